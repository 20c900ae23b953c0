import { cpuContract } from "../testing/contract";

await cpuContract("sse2");

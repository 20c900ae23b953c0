import { cpuContract } from "../testing/contract";

await cpuContract("avx2");

import { cpuContract } from "../testing/contract";

await cpuContract("neon");

import { cpuContract } from "../testing/contract";

/** The instruction set that users of this machine get. */
await cpuContract();

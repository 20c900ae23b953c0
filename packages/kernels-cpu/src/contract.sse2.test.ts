import { cpuContract } from "./testing/contract";

/** The sources of the widest set, whose contract is tried whole. */
await cpuContract("sse2", true);

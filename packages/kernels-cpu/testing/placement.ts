/** Prints, after launches by as many threads as there are processors, which processors the process's threads may use: each set once. */
import { availableParallelism } from "node:os";
import { openCpuBackend } from "../src/backend";
import { launchRule } from "./launch-rule";
import { allowedProcessors } from "./processors";

launchRule(openCpuBackend({ threads: availableParallelism() }), 200_000, 10);
console.log(allowedProcessors());

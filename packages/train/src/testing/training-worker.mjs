/** What a worker of the tests runs, from source. */
import { register } from "tsx/esm/api";

register();
await import("./training-worker.ts");

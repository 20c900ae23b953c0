/** What a worker of the tests runs, from source. */
import { register } from "tsx/esm/api";

register();
await import(new URL("./training-worker.ts", import.meta.url).href);

/** `@opt/train/worker`: training off the main thread. */

export { type ExposedRun, expose } from "./worker/expose";
export type { WorkerEvent, WorkerPort } from "./worker/messages";
export { type StartedRun, start } from "./worker/start";

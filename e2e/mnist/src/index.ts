/** What the benchmark measures: the same network and optimizers as the training program's. */
export { loadMnist, PIXELS } from "./data";
export { digitNetwork } from "./model";
export { optimizers } from "./optimizers";
export { HIDDEN } from "./train";

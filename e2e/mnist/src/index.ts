/** What the benchmark measures: the same data, network and step as the training program's. */
export { type Batch, loadMnist, mnistFolder, PIXELS } from "./data";
export { digitNetwork } from "./model";
export { optimizers } from "./optimizers";
export { trainingStep, trainOn } from "./step";
export { HIDDEN, LEARNING_RATE, readAll } from "./train";

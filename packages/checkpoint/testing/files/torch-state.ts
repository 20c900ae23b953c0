/** What a training loop of torch saves: a model of two parameters and its optimizer's state. */
import { floats, torchTensorCall } from "./made-files";

export const STATE = {
  model: { "fc.weight": torchTensorCall("0", [2, 3]), "fc.bias": torchTensorCall("1", [2]) },
  optimizer: {
    state: new Map([
      [0, { step: 5, exp_avg: torchTensorCall("2", [2, 3]) }],
      [1, { step: 5, exp_avg: torchTensorCall("3", [2]) }],
    ]),
    param_groups: [{ lr: 0.5, params: [0, 1] }],
  },
};
export const STORAGES = {
  0: floats(1, 2, 3, 4, 5, 6),
  1: floats(7, 8),
  2: floats(9, 10, 11, 12, 13, 14),
  3: floats(15, 16),
};

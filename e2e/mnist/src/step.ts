/** One step of training, as every run takes it. */
import type { Adam, AdamW } from "@opt/adam-amsgrad";
import { type Tensor, tidy } from "@opt/core";
import type { NAdam } from "@opt/nadam";
import { crossEntropy, type Sequential } from "@opt/nn";
import { batchOf } from "./batch";
import type { Digits } from "./data";

/** Trains on the digits at the given positions, and returns their loss: a tensor of one element, for the caller to dispose of. */
export function trainingStep(
  model: Sequential,
  optimizer: NAdam | Adam | AdamW,
  digits: Digits,
  positions: Int32Array,
): Tensor {
  return tidy(() => {
    const { images, labels } = batchOf(digits, positions);
    const loss = crossEntropy(model.forward(images), labels);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  });
}

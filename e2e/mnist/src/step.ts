/** One step of training, as every run takes it. */
import type { Adam, AdamW } from "@opt/adam-amsgrad";
import { type Compiled, compile, type Tensor } from "@opt/core";
import type { NAdam } from "@opt/nadam";
import { crossEntropy, type Sequential } from "@opt/nn";
import { type Batch, PIXELS } from "./data";

/** What the model says to digits: [count, 10]. */
export function forward(model: Sequential, images: Tensor): Tensor {
  return model.forward(images.reshape([-1, PIXELS]).div(255));
}

/** Trains on a batch, and returns its loss, eagerly: for comparisons. */
function trainOn(model: Sequential, optimizer: NAdam | Adam | AdamW, [images, labels]: Batch): Tensor {
  const loss = crossEntropy(forward(model, images), labels);
  loss.backward();
  optimizer.step();
  optimizer.zeroGrad();
  return loss.detach();
}

/** A compiled step: trains on a batch, and returns its loss, a tensor of one element for the caller to dispose of. */
export function trainingStep(model: Sequential, optimizer: NAdam | Adam | AdamW): Compiled<[batch: Batch], Tensor> {
  return compile((batch) => trainOn(model, optimizer, batch));
}

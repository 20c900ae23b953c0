/** Cross-entropy of rows of logits with class labels. */

import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { crossEntropyGradRows, crossEntropyRows as lossRows } from "../../rule/row-programs/cross-entropy";
import { overSamples } from "../../tensor/batching";
import { isTaping, noGrad, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { type ComputeDType, computeDType, isFloat } from "../../values/dtype";
import { sameShape, showShape } from "../../values/shape";
import { cast, computeIn } from "../cast";
import { checkDevice } from "../check-device";
import { checkTensor } from "../check-tensor";
import { elementwise } from "../elementwise/elementwise";
import { checkIndexDType, checkIndices } from "../indices/check-indices";
import { fill } from "../map";
import { reshape } from "../shape/shape";
import { launchRows } from "./launch-rows";
import { softmax } from "./softmax";

/**
 * Per row: logsumexp(logits) - logits[label], and 0 where label = ignoreIndex. logits [..., classes], labels i32 [...].
 * A label that is no class throws where the device shares the host's memory (js, wasm, cpu), and gives NaN elsewhere,
 * and in replays of a step that computes it.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for a label that is no class
 */
export function crossEntropyRows(logits: Tensor, labels: Tensor, ignoreIndex = -100): Tensor {
  const samples = overSamples(crossEntropyRows, logits, labels, ignoreIndex);
  if (samples) return samples;
  checkTensor("crossEntropy", logits, "logits");
  checkTensor("crossEntropy", labels, "labels");
  const device = checkDevice("crossEntropy", [logits, labels]);
  check(
    logits.shape.length > 0 && sameShape(logits.shape.slice(0, -1), labels.shape),
    "BAD_SHAPE",
    "crossEntropy",
    () =>
      `labels must have the shape of logits without the class axis, got ${showShape(labels.shape)} for ${showShape(logits.shape)}.`,
    "Pass class indices, not one-hot rows.",
  );
  checkIndexDType("crossEntropy", labels, "labels");
  checkValue(Number.isInteger(ignoreIndex), "crossEntropy", "ignoreIndex", "an integer", ignoreIndex, "Use -100.");
  const dtype = isFloat(logits.dtype) ? logits.dtype : "f32";
  const compute = computeDType(dtype);
  if (logits.dtype !== compute)
    return computeIn(compute, [logits], dtype, (wide) => crossEntropyRows(wide!, labels, ignoreIndex));
  const classes = logits.shape.at(-1)!;
  const rows = labels.size;
  checkIndices("crossEntropy", labels, classes, ignoreIndex);
  const output = Tensor.empty(labels.shape, compute, device);
  const sizes = { rows, length: classes, ignoreIndex };
  launchRows(lossRows, { inputs: { x: logits }, labels, outputs: { loss: output }, ...sizes });
  return record("crossEntropy", output, [logits], [logits, labels], (g, [x, held]) => [
    isTaping() ? recordedGrad(x!, held!, g, ignoreIndex) : crossEntropyGrad(x!, held!, g, ignoreIndex),
  ]);
}

/** g (softmax(x) - the label's class) in each row, and 0 where the label is ignored. */
function crossEntropyGrad(x: Tensor, labels: Tensor, g: Tensor, ignoreIndex: number): Tensor {
  const result = Tensor.empty(x.shape, x.dtype, x.device);
  const sizes = { rows: labels.size, length: x.shape.at(-1)!, ignoreIndex };
  launchRows(crossEntropyGradRows, { inputs: { x, g }, labels, outputs: { dx: result }, ...sizes });
  return result;
}

/** The same by ops that are recorded: softmax(x) less itself is 0, and has its gradient. */
function recordedGrad(x: Tensor, labels: Tensor, g: Tensor, ignoreIndex: number): Tensor {
  const dtype = x.dtype as ComputeDType;
  const one = crossEntropyGrad(x, labels, fill(g.shape, 1, dtype, x.device), ignoreIndex);
  const [below, above] = [elementwise("less", [labels, ignoreIndex]), elementwise("less", [ignoreIndex, labels])];
  const column = [...labels.shape, 1];
  const counts = reshape(cast(elementwise("add", [below, above]), dtype), column);
  const change = elementwise("sub", [softmax(x), noGrad(() => softmax(x))]);
  // The gradient of a mean over no rows is infinite, and infinity times 0 is NaN.
  const counted = elementwise("select", [counts, reshape(g, column), 0]);
  return elementwise("mul", [counted, elementwise("fma", [counts, change, one])]);
}

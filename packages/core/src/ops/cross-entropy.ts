/** Cross-entropy of rows of logits with class labels. */

import { check } from "../errors/errors";
import { show } from "../errors/show";
import { record } from "../tensor/tape";
import { Tensor } from "../tensor/tensor";
import { type ComputeDType, computeDType, isFloat } from "../values/dtype";
import { sameShape, showShape } from "../values/shape";
import { cast, computeIn } from "./cast";
import { checkDevice } from "./check-device";
import { checkIndices } from "./check-indices";
import { checkTensor } from "./check-tensor";

/**
 * Per row: logsumexp(logits) - logits[label], and 0 where label = ignoreIndex. logits [..., classes], labels i32 [...].
 * A label that is no class is refused where the device shares the host's memory (js, wasm, cpu), and gives NaN elsewhere and in replays.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for a label that is no class
 */
export function crossEntropyRows(logits: Tensor, labels: Tensor, ignoreIndex = -100): Tensor {
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
  check(
    !isFloat(labels.dtype),
    "BAD_DTYPE",
    "crossEntropy",
    () => `labels must be integers, got ${labels.dtype}.`,
    `Make them with dtype: "i32".`,
  );
  check(
    Number.isInteger(ignoreIndex),
    "BAD_ARGUMENT",
    "crossEntropy",
    () => `ignoreIndex must be an integer, got ${show(ignoreIndex)}.`,
    "Use -100.",
  );
  const dtype = isFloat(logits.dtype) ? logits.dtype : "f32";
  const compute = computeDType(dtype);
  if (logits.dtype !== compute)
    return computeIn(compute, [logits], dtype, (wide) => crossEntropyRows(wide!, labels, ignoreIndex));
  const indices = cast(labels, "i32");
  const classes = logits.shape.at(-1)!;
  const rows = labels.size;
  checkIndices("crossEntropy", indices, classes, ignoreIndex);
  const output = Tensor.empty(labels.shape, compute, device);
  device.launch({
    kind: "crossEntropy",
    kernel: device.kernel({ kind: "crossEntropy", dtype: compute }),
    logits: logits.memorySlice(),
    labels: indices.memorySlice(),
    output: output.memorySlice(),
    rows,
    classes,
    ignoreIndex,
  });
  const recorded = record("crossEntropy", output, [logits], [logits, indices], (g, [x, held]) => {
    const result = Tensor.empty(x!.shape, x!.dtype, device);
    device.launch({
      kind: "crossEntropyGrad",
      kernel: device.kernel({ kind: "crossEntropyGrad", dtype: x!.dtype as ComputeDType }),
      logits: x!.memorySlice(),
      labels: held!.memorySlice(),
      gradient: g.memorySlice(),
      output: result.memorySlice(),
      rows,
      classes,
      ignoreIndex,
    });
    return [result];
  });
  if (indices !== labels) indices.dispose(); // the tape holds its own
  return recorded;
}

/** Attention of whole batches in one kernel, on devices that have it. */

import { type AttentionSizes, denseHeads } from "../../backend/spec";
import { withPass } from "../../compile/passes/carried-passes";
import { checkOptions } from "../../errors/options";
import { attentionGrad as attentionGradOnJs, attention as attentionOnJs } from "../../js/attention";
import { carried } from "../../js/carried";
import { overSamples } from "../../tensor/batching";
import { isTaping, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { type ComputeDType, computeDType } from "../../values/dtype";
import { sameShape, sizeOf } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { elementwise } from "../elementwise/elementwise";
import { le } from "../elementwise/logic";
import { chosen } from "../elementwise/where";
import { positions } from "../indices/positions";
import { matmul } from "../matmul";
import { sum } from "../reduce/reduce";
import { softmax } from "../rows/softmax";

const ATTENTION = /* @__PURE__ */ withPass(
  /* @__PURE__ */ carried("attention", attentionOnJs),
  async () => (await import("../../compile/passes/stride-heads")).strideHeads,
);
const ATTENTION_GRAD = /* @__PURE__ */ carried("attentionGrad", attentionGradOnJs);

/** What `fusedAttention` computes: scores are multiplied by `scale`; with `isCausal` query i sees keys 0 to i alone. */
export interface AttentionForm {
  readonly scale: number;
  readonly isCausal: boolean;
}

/**
 * softmax(scale query key^T) value of query [..., queries, width], key [..., keys, width] and value [..., keys, columns] in one kernel.
 * It stores no scores. null where the device, the dtype or the shapes need more than it.
 *
 * @example
 * const [query, key, value] = [rand([2, 6, 8]), rand([2, 6, 8]), rand([2, 6, 8])];
 * const seen = fusedAttention(query, key, value, { scale: 0.5, isCausal: true }); // [2, 6, 8], or null
 */
export function fusedAttention(query: Tensor, key: Tensor, value: Tensor, form: AttentionForm): Tensor | null {
  const samples = overSamples(fusedAttention, query, key, value, form);
  if (samples) return samples;
  const name = "fusedAttention";
  const inputs = [query, key, value];
  for (const [i, input] of inputs.entries()) checkTensor(name, input, ["query", "key", "value"][i]);
  checkOptions(name, form, { scale: "number", isCausal: "boolean" });
  const { dtype, device } = query;
  const leading = query.shape.slice(0, -2);
  const fits = inputs.every(
    (x) => x.dtype === dtype && x.device === device && sameShape(x.shape.slice(0, -2), leading) && x.shape.length > 1,
  );
  const [queries, width] = query.shape.slice(-2) as [number, number];
  const [keys, columns] = [key.shape.at(-2)!, value.shape.at(-1)!];
  const isWhole = fits && key.shape.at(-1) === width && value.shape.at(-2) === keys;
  if (!isWhole || dtype !== computeDType(dtype) || !device.backend.fuses?.includes("attention")) return null;
  const sizes = {
    ...{ batch: sizeOf(leading), queries, keys, width, columns },
    ...{ scale: form.scale, causal: form.isCausal },
  };
  const output = Tensor.empty([...leading, queries, columns], dtype, device);
  device.launch({
    kind: "attention",
    kernel: device.kernel({ kind: ATTENTION, dtype }),
    query: query.memorySlice(),
    key: key.memorySlice(),
    value: value.memorySlice(),
    output: output.memorySlice(),
    ...sizes,
    ...denseHeads(sizes),
  });
  return record("attention", output, inputs, inputs, (g, saved) =>
    isTaping() ? recordedGrad(g, saved, form) : attentionGrad(g, saved, sizes),
  );
}

function attentionGrad(gradient: Tensor, saved: readonly Tensor[], sizes: AttentionSizes): Tensor[] {
  const [query, key, value] = saved as [Tensor, Tensor, Tensor];
  const { device } = query;
  const dtype = query.dtype as ComputeDType;
  const gradients = [query, key, value].map(({ shape }) => Tensor.empty(shape, dtype, device));
  const [ofQuery, ofKey, ofValue] = gradients as [Tensor, Tensor, Tensor];
  device.launch({
    kind: "attentionGrad",
    kernel: device.kernel({ kind: ATTENTION_GRAD, dtype }),
    query: query.memorySlice(),
    key: key.memorySlice(),
    value: value.memorySlice(),
    gradient: gradient.memorySlice(),
    queryGradient: ofQuery.memorySlice(),
    keyGradient: ofKey.memorySlice(),
    valueGradient: ofValue.memorySlice(),
    ...sizes,
    ...denseHeads(sizes),
  });
  return gradients;
}

/** The gradients by ops that are recorded: query, key and value have gradients themselves. */
function recordedGrad(g: Tensor, [query, key, value]: readonly Tensor[], { scale, isCausal }: AttentionForm): Tensor[] {
  const scaled = elementwise("mul", [query!, scale]);
  const product = matmul(scaled, key!, { transposeB: true });
  const weights = softmax(isCausal ? causal(product) : product, -1);
  const ofWeights = matmul(g, value!, { transposeB: true });
  const along = sum(elementwise("mul", [ofWeights, weights]), -1, true);
  const ofScores = elementwise("mul", [weights, elementwise("sub", [ofWeights, along])]);
  return [
    elementwise("mul", [matmul(ofScores, key!), scale]),
    matmul(ofScores, scaled, { transposeA: true }),
    matmul(weights, g, { transposeA: true }),
  ];
}

function causal(scores: Tensor): Tensor {
  const [queries, keys] = scores.shape.slice(-2) as [number, number];
  const { device } = scores;
  const isSeen = le(positions([keys], device), positions([queries, 1], device));
  return chosen(isSeen, scores, Number.NEGATIVE_INFINITY);
}

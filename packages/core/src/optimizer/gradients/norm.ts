/** Norms of gradients, and scaling them down to a limit. */

import { zeros } from "../../create";
import { checkValue } from "../../errors/check-value";
import { cast, concat, elementwise } from "../../ops";
import { checkDevice } from "../../ops/check-device";
import { checkAnyTensor } from "../../ops/check-tensor";
import { inWholes } from "../../placement/wholes";
import { defineRule } from "../../rule/rule";
import { mul } from "../../rule/symbols";
import { Tensor } from "../../tensor/tensor";
import { computeDType, type DType, numbersOf } from "../../values/dtype";
import { launchInPlace } from "../in-place";

/** The numbers of all gradients: of row-sparse ones their rows, each once. */
export function gradientsOf(params: readonly Tensor[]): Tensor[] {
  return params.flatMap(({ grad }) => (grad === null ? [] : [grad.sparse?.merged() ?? grad]));
}

/** f64 if one of them is. */
const sumDType = (grads: readonly Tensor[]) => (grads.some(({ dtype }) => dtype === "f64") ? "f64" : "f32");

/** Sums over each gradient of one device, in one launch: of squares, or 0 where all are finite. Gradients of one dtype are read as they are stored. */
export function sumsOf(grads: readonly Tensor[], nonFinite = false, dtype: "f32" | "f64" = sumDType(grads)): Tensor {
  const { device } = grads[0]!;
  const [first] = numbersOf(grads[0]!.dtype);
  const areAlike = dtype === "f32" && grads.every((grad) => numbersOf(grad.dtype)[0] === first);
  const stored = areAlike ? first : dtype;
  const output = Tensor.empty([grads.length], dtype, device);
  device.launch({
    kind: "sumSquares",
    kernel: device.kernel({
      kind: "sumSquares",
      dtype,
      ...(nonFinite && { nonFinite }),
      ...(stored !== dtype && { stored: stored as "bf16" | "f16" }),
    }),
    inputs: grads.map((grad) => (grad.dtype === "c64" && stored === "f32" ? grad : cast(grad, stored)).memorySlice()),
    output: output.memorySlice(),
  });
  return output;
}

/**
 * 0 for each tensor whose elements are all finite, another number for others. They are on one device.
 *
 * @throws OptError BAD_ARGUMENT for what is no list of tensors; DEVICE_MISMATCH
 */
export function nonFinite(tensors: readonly Tensor[]): Tensor {
  checkList("nonFinite", tensors);
  return sumsOf(tensors, true);
}

function checkList(where: string, tensors: readonly Tensor[]): void {
  const isList = Array.isArray(tensors) && tensors.length > 0;
  checkValue(isList, where, "the tensors", "a list of at least one", tensors, "Wrap it: [w].");
  for (const each of tensors) checkAnyTensor(where, each, "a tensor");
  checkDevice(where, tensors);
}

/**
 * The p-norm of each tensor, in f32, or f64 where one is f64. They are on one device. For p = 2 it is one launch for all of them.
 * Of parts (`placement`) it is the norm of the whole, for which all its ranks call this.
 *
 * @throws OptError BAD_ARGUMENT for what is no list of tensors, or an order that is not above 0; DEVICE_MISMATCH
 */
export function norms(grads: readonly Tensor[], p = 2): Tensor {
  checkList("norms", grads);
  checkValue(typeof p === "number" && p > 0, "norms", "the order", "a number above 0", p, "The default is 2.");
  const dtype = sumDType(grads);
  const placements = grads.map(({ placement }) => placement);
  const all = inWholes(grads, placements, (_, wholes) => normsOfWholes(wholes, p, dtype));
  return all.length === 1 ? all[0]! : concat(all);
}

function normsOfWholes(grads: readonly Tensor[], p: number, dtype: "f32" | "f64"): Tensor {
  if (p === 2) return sumsOf(grads, false, dtype).sqrt();
  const each = grads.map((grad) => {
    const magnitude =
      grad.dtype === "c64"
        ? grad
            .alias([...grad.shape, 2], 0, "f32")
            .pow(2)
            .sum(-1)
            .sqrt()
        : cast(grad, computeDType(grad.dtype)).abs();
    if (grad.size === 0) return zeros([1], { dtype: magnitude.dtype, device: grad.device });
    return (
      p === Number.POSITIVE_INFINITY
        ? magnitude.max()
        : magnitude
            .pow(p)
            .sum()
            .pow(1 / p)
    ).reshape([1]);
  });
  return concat(each.map((norm) => cast(norm, dtype)));
}

/** The norm of all together, of shape []. */
export function totalNorm(grads: readonly Tensor[], p: number): Tensor {
  const each = norms(grads, p);
  return each.size === 1 ? each.reshape([]) : norms([each], p).reshape([]);
}

/** min(1, maxNorm / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_. */
export function clipFactor(total: Tensor, maxNorm: number): Tensor {
  return elementwise("div", [maxNorm, total.add(1e-6)]).minimum(1);
}

export const SCALE = /* @__PURE__ */ defineRule({
  name: "scale",
  buffers: ["grad"],
  scalars: ["factor"],
  update: ({ grad }, { factor }) => ({ grad: mul(grad, factor) }),
});

/** grad *= factor, a tensor of one element, in one launch per dtype. */
export function scaleInPlace(grads: readonly Tensor[], factor: Tensor): void {
  launchInPlace(SCALE, grads, (dtype: DType) => cast(factor, computeDType(dtype)).memorySlice());
}

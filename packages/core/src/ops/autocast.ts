/** Mixed precision: which ops compute in 16 bits, and which in float32. */
import { tidy } from "../device/scope";
import { checkValue } from "../errors/check-value";
import { shared } from "../host/shared";
import { checkBody, checkSynchronous } from "../host/synchronous";
import type { Tensor } from "../tensor/tensor";
import type { DType } from "../values/dtype";
import { cast } from "./cast";
import { checkTensor } from "./check-tensor";

/** The dtype of matrix products; null: that of their operands. */
export type AutocastDType = "bf16" | "f16" | null;

const state = /* @__PURE__ */ shared("autocast", () => ({ dtype: null as AutocastDType }));

/**
 * Runs `body` in mixed precision, as torch.autocast. Matrix products, convolutions and attention compute in 16 bits; softmax, norms,
 * losses, exponentials, logarithms, powers, `prod` and running sums in float32. Other ops follow their operands, where float32 wins. Parameters stay float32, and
 * so do their gradients. Tensors in float64 stay as they are. Call `backward()` outside. With "f16" use a GradScaler. null: as without it.
 *
 * @throws OptError BAD_ARGUMENT if `body` is asynchronous or for another dtype
 * @example
 * const loss = autocast("bf16", () => crossEntropy(model.forward(x), labels));
 * loss.backward();
 */
export function autocast<Result>(dtype: AutocastDType, body: () => Result): Result {
  const isKnown = dtype === "bf16" || dtype === "f16" || dtype === null;
  checkValue(isKnown, "autocast", "the dtype", '"bf16", "f16" or null', dtype);
  checkBody("autocast", body);
  return withAutocast(dtype, () => {
    const result = body();
    checkSynchronous("autocast", result);
    return result;
  });
}

/** The same for bodies of core. */
export function withAutocast<Result>(dtype: AutocastDType, body: () => Result): Result {
  const before = state.dtype;
  state.dtype = dtype;
  try {
    return body();
  } finally {
    state.dtype = before;
  }
}

/** What `autocast` is given around the present call; null outside. */
export const autocastDType = (): AutocastDType => state.dtype;

/** Floats but float64 in autocast's dtype; others, and all outside of autocast, as they are. For layers that add a bias to a product. */
export function lowered(x: Tensor): Tensor {
  checkTensor("lowered", x);
  return isCast(x.dtype, state.dtype) ? cast(x, state.dtype!) : x;
}

/** 16-bit floats within autocast in float32; others, and all outside of autocast, as they are. For losses. */
export function widened(x: Tensor): Tensor {
  checkTensor("widened", x);
  return cast(x, widenedDType(x.dtype));
}

/** An op on operands in autocast's dtype; null where they are so already, and outside. */
export const inLow = (tensors: readonly Tensor[], op: (...tensors: Tensor[]) => Tensor) =>
  casted(tensors, state.dtype, op);

/** What an op gives that autocast computes in float32: float32 for 16-bit floats, and all outside of autocast as it is. */
export const widenedDType = (dtype: DType): DType => (isCast(dtype, state.dtype && "f32") ? "f32" : dtype);

/** An op on operands in float32; null where none has 16 bits, and outside of autocast. */
export const inFloat32 = (tensors: readonly Tensor[], op: (...tensors: Tensor[]) => Tensor) =>
  casted(tensors, state.dtype && "f32", op);

function casted(tensors: readonly Tensor[], to: DType | null, op: (...tensors: Tensor[]) => Tensor): Tensor | null {
  if (!tensors.some(({ dtype }) => isCast(dtype, to))) return null;
  return tidy(() => op(...tensors.map((x) => (isCast(x.dtype, to) ? cast(x, to!) : x))));
}

const isCast = (from: DType, to: DType | null) =>
  to !== null && from !== to && (from === "f32" || from === "bf16" || from === "f16");

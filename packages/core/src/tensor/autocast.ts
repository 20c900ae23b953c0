/** Mixed precision: the mode, which is null outside. `ops/autocast-operands.ts` casts operands by it. */
import { checkValue } from "../errors/check-value";
import { shared } from "../host/shared";
import { checkBody, checkSynchronous } from "../host/synchronous";

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

/** What norms by channel in one kernel take. */
import type { FusedKind } from "../../backend/spec";
import { checkValue } from "../../errors/check-value";
import type { Tensor } from "../../tensor/tensor";
import { computeDType } from "../../values/dtype";
import { sameShape } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { fill } from "../map";

/**
 * Weight and bias of x [outer, channels, inner], 1 and 0 where they are missing. null where the device, the dtype or the shapes need more than
 * the kernel.
 *
 * @throws OptError BAD_ARGUMENT
 */
export function channelOperands(
  where: string,
  kind: FusedKind,
  x: Tensor,
  weight: Tensor | null,
  bias: Tensor | null,
  eps: number,
): readonly [weight: Tensor, bias: Tensor] | null {
  checkTensor(where, x);
  if (weight !== null) checkTensor(where, weight, "weight");
  if (bias !== null) checkTensor(where, bias, "bias");
  checkValue(typeof eps === "number" && eps >= 0, where, "eps", ">= 0", eps, "Use 1e-5.");
  const { dtype, device, shape } = x;
  if (!device.backend.fuses?.includes(kind) || shape.length !== 3 || dtype !== computeDType(dtype)) return null;
  const channels = shape[1]!;
  const fits = (given: Tensor | null) =>
    given === null || (given.dtype === dtype && given.device === device && sameShape(given.shape, [channels]));
  if (!fits(weight) || !fits(bias)) return null;
  return [weight ?? fill([channels], 1, dtype, device), bias ?? fill([channels], 0, dtype, device)];
}

/** Checks that operands are tensors. JavaScript callers may pass anything. */

import type { Device } from "../device/device";
import { isTensor } from "../device/scope";
import { checkValue } from "../errors/check-value";
import { OptError } from "../errors/errors";
import type { Tensor } from "../tensor/tensor";
import type { DType } from "../values/dtype";

/** Checks that a value is a tensor of any copy of core that its device computes with, not disposed. @throws OptError BAD_ARGUMENT, BAD_DTYPE, UNSUPPORTED, DISPOSED */
export function checkTensor(where: string, value: unknown, name = "x"): asserts value is Tensor {
  checkAnyTensor(where, value, name);
  checkNumbers(where, value);
}

/** Checks that a value is a list of one tensor or more. @throws OptError BAD_ARGUMENT, as `checkTensor` */
export function checkTensors(where: string, list: unknown): asserts list is readonly Tensor[] {
  const isList = Array.isArray(list) && list.length > 0;
  checkValue(isList, where, "tensors", "a list of tensors", list, "Pass tensors: [a, b].");
  for (const [i, tensor] of (list as unknown[]).entries()) checkTensor(where, tensor, `tensor ${i}`);
}

/** The same, but also for those that no op computes with. @throws OptError BAD_ARGUMENT, DISPOSED */
export function checkAnyTensor(where: string, value: unknown, name = "x"): asserts value is Tensor {
  const found = typeof value === "object" && value !== null && isTensor in value;
  checkValue(found, where, name, "a Tensor", value, "Make one with tensor(data).");
  (value as Tensor).checkAlive(); // before an op allocates what it would leave behind
}

/** Numbers that the device computes with. @throws OptError BAD_DTYPE for complex ones; UNSUPPORTED for f64 where the device lacks it */
export function checkNumbers(where: string, { dtype, device }: Tensor): void {
  if (dtype === "f64") checkFloat64(where, dtype, device);
  if (dtype !== "c64") return; // each op asks: a closure for the error would be garbage
  throw new OptError("BAD_DTYPE", where, "needs real numbers, got c64.", "Use viewAsReal(x), complexMul(x, y).");
}

/** @throws OptError UNSUPPORTED for f64 on a device that holds it, but does not compute with it */
export function checkFloat64(where: string, dtype: DType, { name, backend }: Device): void {
  if (dtype !== "f64" || backend.dtypes.includes("f64")) return;
  const advice = `Use f32: x.to("f32") before x.to("${name}"), or the option dtype: "f32".`;
  throw new OptError("UNSUPPORTED", where, `${name} computes in ${backend.dtypes.join(" and ")}, got f64.`, advice);
}

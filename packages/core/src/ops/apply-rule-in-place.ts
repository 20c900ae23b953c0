/** A rule launched on tensors, which it overwrites: what an optimizer of your own does with its vectors. */

import type { Scalar } from "../backend/memory";
import { WrittenSlices } from "../device/overlap";
import { tidy } from "../device/scope";
import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { isPlainObject } from "../errors/show";
import type { Rule } from "../rule/rule";
import { checkWritable } from "../tensor/copied";
import { noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import type { DType } from "../values/dtype";
import { showShape } from "../values/shape";
import { bufferOf, checkIsRule, scalarOf } from "./apply-rule";
import { clone } from "./cast";

/**
 * Runs a rule on tensors in one launch: `buffers = rule(buffers; scalars)` element by element. Nothing is recorded.
 *
 * @param buffers for each tensor that is updated, the rule's buffers by name: f32 or f64, of one size, on one device. Buffers
 * that the rule writes share no elements; what it only reads may overlap them. All launches have one dtype.
 * @param scalars numbers, or tensors of one element on the device, which the launch reads there
 * @throws OptError BAD_ARGUMENT if a buffer or scalar is missing, BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_STATE
 * for a buffer that is a copy such as the result of slice. Nothing has changed then.
 * @example
 * const axpy = defineRule({
 *   name: "axpy", buffers: ["y", "x"], scalars: ["a"], update: ({ y, x }, { a }) => ({ y: fma(a, x, y) }),
 * });
 * const y = tensor([1, 2]);
 * applyRuleInPlace(axpy, [{ y, x: tensor([3, 4]) }], { a: 10 }); // y is [31, 42]
 */
export function applyRuleInPlace<Buffer extends string, Name extends string>(
  rule: Rule<Buffer, Name>,
  buffers: readonly Readonly<Record<Buffer, Tensor>>[],
  scalars: Readonly<Record<Name, Tensor | number>>,
): void {
  const where = "applyRuleInPlace";
  checkIsRule(where, rule);
  const areLists =
    Array.isArray(buffers) && buffers.length > 0 && buffers.every((each): boolean => isPlainObject(each));
  checkValue(areLists, where, "buffers", "a list of buffers by name", buffers, "For example [{ param, grad }].");
  checkValue(isPlainObject(scalars), where, "scalars", "values by name", scalars, "For example { lr: 0.1 }.");
  const lists = buffers.map((each) => rule.buffers.map((name) => bufferOf(rule, name, each[name])));
  const { dtype, device } = lists[0]![0]!;
  check(
    dtype === "f32" || dtype === "f64",
    "BAD_DTYPE",
    rule.name,
    () => `buffers must be f32 or f64, got ${dtype}.`,
    `Cast them with to("f32").`,
  );
  for (const list of lists) {
    for (const [slot, buffer] of list.entries()) {
      checkLike(rule, rule.buffers[slot]!, buffer, list[0]!.size, dtype);
      check(
        buffer.device === device,
        "DEVICE_MISMATCH",
        rule.name,
        () => `buffers must be on ${device.name}, got ${buffer.device.name}.`,
        "Move them with to().",
      );
    }
  }
  const given = rule.scalars.map((name): Scalar => {
    const value = scalarOf(rule, name, scalars[name]);
    if (typeof value === "number") return value;
    checkLike(rule, name, value, 1, dtype);
    return value.memorySlice();
  });
  const written = rule.writes.map((name) => rule.buffers.indexOf(name));
  for (const list of lists) for (const slot of written) checkWritable(rule.name, list[slot]!);
  const slices = lists.map((list) => list.map((buffer) => buffer.memorySlice()));
  const targets = new WrittenSlices(
    slices.flatMap((list) => written.map((slot) => list[slot]!)),
    dtype,
    device.pool.wrapped,
  );
  for (const list of slices) for (const slot of written) checkApart(rule, slot, targets.overlaps(list[slot]!));
  tidy(() =>
    device.launch({
      kind: "rule",
      kernel: device.kernel({ kind: "rule", rule, dtype }),
      tensors: slices.map((list, i) =>
        list.map((slice, slot) =>
          written.includes(slot) || !targets.overlaps(slice)
            ? slice
            : noGrad(() => clone(lists[i]![slot]!)).memorySlice(),
        ),
      ),
      scalars: given,
    }),
  );
  for (const list of lists) for (const slot of written) list[slot]!.storage.overwritten();
}

/** @throws OptError BAD_ARGUMENT */
function checkApart(rule: Rule, slot: number, overlaps: boolean): void {
  check(
    !overlaps,
    "BAD_ARGUMENT",
    rule.name,
    () => `buffers that it writes must share no elements, got ${rule.buffers[slot]} in the memory of another.`,
    "Run it once for each, or use clone().",
  );
}

/** @throws OptError BAD_SHAPE, BAD_DTYPE */
function checkLike(rule: Rule, name: string, value: Tensor, size: number, dtype: DType): void {
  check(
    value.size === size,
    "BAD_SHAPE",
    rule.name,
    () => `${name} must have ${size} elements, got ${showShape(value.shape)}.`,
    "The buffers of a tensor have one size.",
  );
  check(
    value.dtype === dtype,
    "BAD_DTYPE",
    rule.name,
    () => `${name} must be ${dtype}, got ${value.dtype}.`,
    `Cast it with to("${dtype}").`,
  );
}

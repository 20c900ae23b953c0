/** Comparisons, and truth of elements: what is not 0 is true, NaN too. */

import { Expression } from "../../rule/expression";
import { abs, less, where } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import type { ElementwiseDefinition } from "../definition";
import { fill } from "../map";
import { ifAtMost, ifEqual } from "./conditions";
import { defineOp } from "./define-op";
import { elementwise } from "./elementwise";
import { extended } from "./elementwise-table";

const ZERO = /* @__PURE__ */ Expression.constant(0);
const ifTrue = (x: Expression, yes: Expression | number, no: Expression | number) => ifEqual(x, ZERO, no, yes);

const IS_FINITE: ElementwiseDefinition = {
  forward: (x) => where(less(abs(x!), Number.POSITIVE_INFINITY), 1, 0),
  gradients: [null],
  result: "bool",
};

/** 1 where equal, 0 elsewhere, as bool: NaN equals nothing. A number that a 16-bit float is compared with is rounded to that first. */
export const eq = /* @__PURE__ */ defineOp({
  name: "eq",
  torch: "a == b # torch.eq(a, b)",
  inputs: 2,
  forward: (a, b) => ifEqual(a!, b!, 1, 0),
  gradients: [null, null],
  result: "bool",
});

/** Where they differ, as bool: also where one is NaN. */
export const ne = /* @__PURE__ */ defineOp({
  name: "ne",
  torch: "a != b # torch.ne(a, b)",
  inputs: 2,
  forward: (a, b) => ifEqual(a!, b!, 0, 1),
  gradients: [null, null],
  result: "bool",
});

const AT_MOST: ElementwiseDefinition = {
  forward: (a, b) => ifAtMost(a!, b!, 1, 0),
  gradients: [null, null],
  result: "bool",
};

/** a <= b, as bool. */
export const le = /* @__PURE__ */ defineOp({ name: "le", torch: "a <= b # torch.le(a, b)", inputs: 2, ...AT_MOST });

const PAIR = ["...", "..."] as const;

/** a < b, as bool. */
export const lt = /* @__PURE__ */ definePrimitive(
  { torch: "a < b # torch.lt(a, b)", tensors: PAIR },
  (a: Tensor | number, b: Tensor | number): Tensor => elementwise("less", [a, b], "lt"),
);

/** a > b, as bool. */
export const gt = /* @__PURE__ */ definePrimitive(
  { torch: "a > b # torch.gt(a, b)", tensors: PAIR },
  (a: Tensor | number, b: Tensor | number): Tensor => elementwise("less", [b, a], "gt"),
);

/** a >= b, as bool. */
export const ge = /* @__PURE__ */ definePrimitive(
  { torch: "a >= b # torch.ge(a, b)", tensors: PAIR },
  (a: Tensor | number, b: Tensor | number): Tensor => elementwise(extended("le", AT_MOST), [b, a], "ge"),
);

/**
 * Whether both are true, as bool, elementwise and broadcast.
 *
 * @example
 * logicalAnd(tensor([0, 2]), tensor([1, 1])); // [false, true]
 */
export const logicalAnd = /* @__PURE__ */ defineOp({
  name: "logicalAnd",
  torch: "torch.logical_and(a, b)",
  inputs: 2,
  forward: (a, b) => ifTrue(a!, ifTrue(b!, 1, 0), 0),
  gradients: [null, null],
  result: "bool",
});

/**
 * Whether one is true, as bool, elementwise and broadcast.
 *
 * @example
 * logicalOr(tensor([0, 2]), tensor([0, 0])); // [false, true]
 */
export const logicalOr = /* @__PURE__ */ defineOp({
  name: "logicalOr",
  torch: "torch.logical_or(a, b)",
  inputs: 2,
  forward: (a, b) => ifTrue(a!, 1, ifTrue(b!, 1, 0)),
  gradients: [null, null],
  result: "bool",
});

/**
 * Whether x is 0, as bool.
 *
 * @example
 * logicalNot(tensor([0, 2])); // [true, false]
 */
export const logicalNot = /* @__PURE__ */ defineOp({
  name: "logicalNot",
  torch: "torch.logical_not(a)",
  inputs: 1,
  forward: (x) => ifTrue(x!, 0, 1),
  gradients: [null],
  result: "bool",
});

/**
 * Whether x is NaN, as bool.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE
 * @example
 * isnan(tensor([0, NaN])); // [false, true]
 */
export const isnan = /* @__PURE__ */ definePrimitive({ torch: "a.isnan()" }, (x: Tensor): Tensor => {
  checkTensor("isnan", x);
  return isFloat(x.dtype) ? ne(x, x) : fill(x.shape, 0, "bool", x.device);
});

/**
 * Whether x is neither NaN nor infinite, as bool.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE
 * @example
 * isfinite(tensor([0, -Infinity])); // [true, false]
 */
export const isfinite = /* @__PURE__ */ definePrimitive({ torch: "a.isfinite()" }, (x: Tensor): Tensor => {
  checkTensor("isfinite", x);
  return isFloat(x.dtype) ? elementwise(extended("isfinite", IS_FINITE), [x]) : fill(x.shape, 1, "bool", x.device);
});

/** Truth of elements: what is not 0 is true, NaN too. */

import { Expression } from "../../rule/expression";
import { abs, less, where } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { checkTensor } from "../check-tensor";
import { fill } from "../map";
import { elementwise } from "./elementwise";
import { type ElementwiseDefinition, extended, ifEqual } from "./elementwise-table";

const ZERO = /* @__PURE__ */ Expression.constant(0);
const ifTrue = (x: Expression, yes: Expression | number, no: Expression | number) => ifEqual(x, ZERO, no, yes);

const AND: ElementwiseDefinition = {
  forward: (a, b) => ifTrue(a!, ifTrue(b!, 1, 0), 0),
  derivatives: [null, null],
  result: "bool",
};

const OR: ElementwiseDefinition = {
  forward: (a, b) => ifTrue(a!, 1, ifTrue(b!, 1, 0)),
  derivatives: [null, null],
  result: "bool",
};

const IS_FINITE: ElementwiseDefinition = {
  forward: (x) => where(less(abs(x!), Number.POSITIVE_INFINITY), 1, 0),
  derivatives: [null],
  result: "bool",
};

/**
 * Whether both are true, as bool, elementwise and broadcast.
 *
 * @throws OptError BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT, BAD_DTYPE
 * @example
 * logicalAnd(tensor([0, 2]), tensor([1, 1])); // [false, true]
 */
export function logicalAnd(a: Tensor, b: Tensor): Tensor {
  return ofTwo("logicalAnd", AND, a, b);
}

/**
 * Whether one is true, as bool, elementwise and broadcast.
 *
 * @throws OptError BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT, BAD_DTYPE
 * @example
 * logicalOr(tensor([0, 2]), tensor([0, 0])); // [false, true]
 */
export function logicalOr(a: Tensor, b: Tensor): Tensor {
  return ofTwo("logicalOr", OR, a, b);
}

function ofTwo(name: string, definition: ElementwiseDefinition, a: Tensor, b: Tensor): Tensor {
  checkTensor(name, a, "the left operand");
  checkTensor(name, b, "the right operand");
  return elementwise(extended(name, definition), [a, b]);
}

/**
 * Whether x is 0, as bool.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE
 * @example
 * logicalNot(tensor([0, 2])); // [true, false]
 */
export function logicalNot(x: Tensor): Tensor {
  checkTensor("logicalNot", x);
  return elementwise("eq", [x, 0]);
}

/**
 * Whether x is NaN, as bool.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE
 * @example
 * isnan(tensor([0, NaN])); // [false, true]
 */
export function isnan(x: Tensor): Tensor {
  checkTensor("isnan", x);
  return isFloat(x.dtype) ? elementwise("ne", [x, x]) : fill(x.shape, 0, "bool", x.device);
}

/**
 * Whether x is neither NaN nor infinite, as bool.
 *
 * @throws OptError BAD_ARGUMENT, BAD_DTYPE
 * @example
 * isfinite(tensor([0, -Infinity])); // [true, false]
 */
export function isfinite(x: Tensor): Tensor {
  checkTensor("isfinite", x);
  return isFloat(x.dtype) ? elementwise(extended("isfinite", IS_FINITE), [x]) : fill(x.shape, 1, "bool", x.device);
}

/** The methods of tensors: `x.add(y)` is `add(x, y)`. They are installed on the class, which knows none of them. */

import { deviceOf } from "./device/registry";
import { backward } from "./engine";
import { check } from "./errors/errors";
import { checkOptions } from "./errors/options";
import { inspectSymbol } from "./host/inspect-symbol";
import * as ops from "./ops";
import { operate } from "./rule/expression";
import type { Fluent } from "./tensor/fluent";
import { inspected, nested, printed } from "./tensor/inspect";
import { checkSingle, decode, readBytes, readBytesSync } from "./tensor/read";
import { summaryOf } from "./tensor/summary";
import { Tensor } from "./tensor/tensor";
import { checkDType, isDType, meantDType, type TypedArray } from "./values/dtype";

const methods: Fluent<Tensor> & ThisType<Tensor> = {
  async data<A extends TypedArray>() {
    return decode(this, await readBytes(this)) as A;
  },
  dataSync<A extends TypedArray>() {
    return decode(this, readBytesSync(this)) as A;
  },
  bytes() {
    return readBytes(this);
  },
  bytesSync() {
    return readBytesSync(this);
  },
  async item() {
    checkSingle("item", this);
    return (await this.data())[0]!;
  },
  tolist() {
    return nested(this, this.dataSync());
  },
  async print() {
    console.log(await printed(this));
  },
  toJSON() {
    return summaryOf(this);
  },
  [inspectSymbol]() {
    return inspected(this);
  },
  [Symbol.toPrimitive](hint) {
    if (hint === "string") return this.toString();
    checkSingle("Number", this);
    return this.dataSync()[0]!;
  },

  set(data) {
    ops.overwrite(this, data);
  },
  backward(gradient, options) {
    backward(this, gradient, options);
  },
  detach() {
    return this.alias();
  },
  clone() {
    return ops.clone(this);
  },
  to(target) {
    this.checkAlive();
    const isGiven = target !== undefined;
    check(isGiven, "BAD_ARGUMENT", "to", () => "needs a dtype or a device, got undefined.", `For example "f64".`);
    if (!isDType(target) && meantDType(target) !== undefined) checkDType("to", target);
    const result = isDType(target) ? ops.cast(this, target) : ops.move(this, deviceOf("to", target));
    return result === this ? ops.reshape(this, this.shape) : result;
  },

  [operate](op, operands) {
    return ops.elementwise(op, operands as readonly (Tensor | number)[]);
  },
  add(other) {
    return ops.elementwise("add", [this, other]);
  },
  sub(other) {
    return ops.elementwise("sub", [this, other]);
  },
  mul(other) {
    return ops.elementwise("mul", [this, other]);
  },
  div(other) {
    return ops.elementwise("div", [this, other]);
  },
  neg() {
    return ops.elementwise("neg", [this]);
  },
  exp() {
    return ops.elementwise("exp", [this]);
  },
  log() {
    return ops.elementwise("log", [this]);
  },
  sqrt() {
    return ops.elementwise("sqrt", [this]);
  },
  tanh() {
    return ops.elementwise("tanh", [this]);
  },
  sigmoid() {
    return ops.elementwise("sigmoid", [this]);
  },
  relu() {
    return ops.elementwise("relu", [this]);
  },
  gelu() {
    return ops.elementwise("gelu", [this]);
  },
  abs() {
    return ops.elementwise("abs", [this]);
  },
  pow(exponent) {
    return ops.elementwise("pow", [this, exponent]);
  },
  maximum(other) {
    return ops.elementwise("maximum", [this, other]);
  },
  minimum(other) {
    return ops.elementwise("minimum", [this, other]);
  },

  sum(axis, keepDim) {
    return ops.sum(this, axis, keepDim);
  },
  mean(axis, keepDim) {
    return ops.mean(this, axis, keepDim);
  },
  max(axis, keepDim) {
    return ops.maxOver(this, axis, keepDim);
  },
  argmax(axis, keepDim) {
    return ops.argmax(this, axis, keepDim);
  },
  matmul(other, options) {
    return matmul(this, other, options);
  },
  reshape(shape) {
    return ops.reshape(this, shape);
  },
  transpose(a = -2, b = -1) {
    return ops.transpose(this, a, b);
  },
  permute(axes) {
    return ops.permute(this, axes);
  },
  slice(start, end, axis = 0) {
    return ops.slice(this, start, end, axis);
  },
  softmax(axis = -1) {
    return ops.softmax(this, axis, false);
  },
  logSoftmax(axis = -1) {
    return ops.softmax(this, axis, true);
  },
};

const MATMUL = { transposeA: "boolean", transposeB: "boolean" } as const;

/**
 * The matrix product, with PyTorch's broadcasting of leading axes.
 * For users: the ops call each other without options objects of unknown making.
 */
export function matmul(
  a: Tensor,
  b: Tensor,
  options?: { readonly transposeA?: boolean; readonly transposeB?: boolean },
): Tensor {
  if (options !== undefined) checkOptions("matmul", options, MATMUL);
  return ops.matmul(a, b, options);
}

/** @internal Their names, for tests that try them all. */
export const installedMethods: readonly (string | symbol)[] = /* @__PURE__ */ Reflect.ownKeys(methods);

/** Called by the module in which every tensor begins: a bare import of this one would be dropped by bundlers. */
export function installMethods(): void {
  for (const key of Reflect.ownKeys(methods)) {
    const value = methods[key as keyof Fluent<Tensor>];
    Object.defineProperty(Tensor.prototype, key, { value, writable: true, configurable: true });
  }
}

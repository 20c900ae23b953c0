/** The methods of tensors: `x.add(y)` is `add(x, y)`. They are installed on the class, which knows none of them. */

import { backward } from "./autograd";
import { deviceOf } from "./device/registry";
import { check } from "./errors/errors";
import { inspectSymbol } from "./host/inspect-symbol";
import * as ops from "./ops";
import { operate } from "./rule/expression";
import type { Fluent } from "./tensor/fluent";
import { inspected, nested, printed } from "./tensor/inspect";
import { checkSingle, decode, readBytes, readBytesSync } from "./tensor/read";
import { summaryOf } from "./tensor/summary";
import { Tensor } from "./tensor/tensor";
import { checkDType, isDType, meantDType, type TypedArray } from "./values/dtype";
import * as views from "./views";

type Shortened = (typeof OF_RULES)[number] | keyof typeof CALLED;

const written: Omit<Fluent<Tensor>, Shortened> & ThisType<Tensor> = {
  data<A extends TypedArray>() {
    return readBytes(this).then((bytes) => decode(this, bytes) as A);
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
  item() {
    this.device.checkReadable();
    return itemOf(this);
  },
  tolist() {
    return nested(this, this.dataSync());
  },
  print() {
    this.device.checkReadable();
    return printed(this).then((text) => console.log(text));
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

  detach() {
    const view = this.alias();
    if (this.placement) view.placement = this.placement;
    return view;
  },
  to(target, more?: unknown) {
    this.checkAlive();
    const isOne = target !== undefined && more === undefined;
    check(isOne, "BAD_ARGUMENT", "to", () => "needs a dtype or a device, got none or both.", `Use "f64".`);
    if (!isDType(target) && meantDType(target) !== undefined) checkDType("to", target);
    const result = isDType(target) ? ops.cast(this, target) : ops.move(this, deviceOf("to", target));
    return result === this ? ops.reshape(this, this.shape) : result;
  },

  [operate](name, operands) {
    if (name === "where") return ops.chosen(...(operands as [Tensor, Tensor, Tensor]));
    return ops.elementwise(name, operands as readonly (Tensor | number)[]);
  },
};

async function itemOf(x: Tensor): Promise<number> {
  checkSingle("item", x);
  return (await x.data())[0]!;
}

/** Ops of rules, which need no checks of their own. */
const OF_RULES = [
  ...(["neg", "exp", "log", "sqrt", "tanh", "abs", "log1p", "expm1"] as const),
  ...(["add", "sub", "mul", "div", "pow", "maximum", "minimum"] as const),
] as const;

/** Each method as a function of the tensor, so that `Fluent` and the function can't differ. */
type AsFunctions = {
  [Name in keyof Fluent<Tensor>]?: (
    x: Tensor,
    ...args: Parameters<Fluent<Tensor>[Name]>
  ) => ReturnType<Fluent<Tensor>[Name]>;
};

/** Functions whose first operand is the tensor: `x.sum(axis)` is `sum(x, axis)`. */
const CALLED = {
  set: ops.overwrite,
  assign: ops.assign,
  backward,
  clone: ops.clone,
  sum: ops.sum,
  mean: ops.mean,
  sigmoid: ops.sigmoid,
  relu: ops.relu,
  gelu: ops.exactGelu,
  eq: ops.eq,
  ne: ops.ne,
  lt: ops.lt,
  le: ops.le,
  gt: ops.gt,
  ge: ops.ge,
  softmax: ops.softmax,
  logSoftmax: ops.logSoftmax,
  square: ops.square,
  rsqrt: ops.rsqrt,
  max: ops.maxOver,
  min: ops.minOver,
  argmax: ops.argmax,
  argmin: ops.argmin,
  matmul: ops.matmul,
  reshape: ops.reshape,
  transpose: views.transpose,
  permute: views.permute,
  slice: views.slice,
  select: views.select,
  at: views.at,
  var: ops.variance,
  std: ops.std,
  norm: ops.norm,
  clamp: ops.clamp,
  squeeze: ops.squeeze,
  unsqueeze: ops.unsqueeze,
  expand: views.expand,
} satisfies AsFunctions;

type Method = (this: Tensor, ...args: never[]) => unknown;

function allMethods(): Map<PropertyKey, Method> {
  const all = new Map<PropertyKey, Method>();
  for (const key of Reflect.ownKeys(written)) all.set(key, written[key as keyof typeof written] as Method);
  for (const name of OF_RULES) {
    all.set(name, function (...others: Tensor[]) {
      return ops.elementwise(name, [this, ...others]);
    });
  }
  for (const [name, op] of Object.entries<(x: Tensor, ...args: never[]) => unknown>(CALLED)) {
    all.set(name, function (...args) {
      return op(this, ...args);
    });
  }
  return all;
}

/** @internal Their names, for tests that try them all. */
export const installedMethods: readonly PropertyKey[] = /* @__PURE__ */ (() => [...allMethods().keys()])();

/** Called by the module in which every tensor begins: a bare import of this one would be dropped by bundlers. */
export function installMethods(): void {
  for (const [key, value] of allMethods()) {
    Object.defineProperty(Tensor.prototype, key, { value, writable: true, configurable: true });
  }
}

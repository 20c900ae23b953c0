/** Random op graphs over the values of a draft, kept within the numbers that every dtype holds. */
import type { DType } from "@opt/core";
import { sizeOf } from "../numbers";
import { broadcast } from "../op-kind";
import type { Shape } from "../program";
import { ARRANGEMENTS } from "./arranging";
import { CHOICES, condition } from "./choosing";
import { type Draft, NO_LIMIT, type Value } from "./draft";
import { type Growth, MOST } from "./growth";
import { LAYERS } from "./layers";
import { PIECES, RESIDUAL } from "./pieces";

/** Above it, numbers are brought back before anything else is done with them. */
const LARGE = 200;
/** One more value, made from the last ones more often than from others. */
export function grow(draft: Draft): Value | null {
  const { random } = draft;
  const floats = draft.floats();
  const recent = floats.slice(-4);
  const x = draft.chance(0.6) ? random.pick(recent) : random.pick(floats);
  if (draft.chance(0.07)) return random.pick([PIECES, PIECES, RESIDUAL])(draft, tamed(draft, x));
  if (draft.chance(0.07)) return random.pick(LAYERS)(draft, tamed(draft, x));
  if (draft.chance(0.2)) return random.pick(draft.chance(0.5) ? CHOICES : ARRANGEMENTS)(draft, tamed(draft, x));
  return random.pick(draft.chance(0.35) ? MOVES : draft.chance(0.4) ? UNARY : OTHERS)(draft, tamed(draft, x));
}

/** The value, or a smaller one made from it. */
export function tamed(draft: Draft, x: Value): Value {
  if (x.bound <= LARGE) return x;
  return draft.chance(0.3)
    ? draft.op("tanh", [x], { bound: 1, low: -1 })
    : draft.op("mul", [x, 2 ** -Math.ceil(Math.log2(x.bound))], { bound: 1 });
}

/** A version of it that nothing is below 0.5. */
function positive(draft: Draft, x: Value): Value {
  if (x.low >= 0.25) return x;
  const squared = draft.chance(0.5)
    ? draft.op("abs", [x], { low: 0 })
    : draft.op("mul", [x, x], { low: 0, bound: x.bound ** 2 });
  return draft.op("add", [squared, 0.5], { low: 0.5, bound: squared.bound + 0.5 });
}

/** Another value that broadcasts with x. */
function partner(draft: Draft, x: Value): Value {
  const fitting = draft.floats().filter(({ shape }) => {
    const together = broadcast([shape, x.shape]);
    return together !== null && sizeOf(together) <= MOST;
  });
  if (draft.chance(0.85)) return tamed(draft, fitting.length > 0 ? draft.random.pick(fitting) : x);
  return draft.leaf(draft.chance(0.6) ? "parameter" : "data", stretchable(draft, x.shape), draft.floatDType());
}

/** A shape that broadcasts to another. */
export function stretchable(draft: Draft, shape: Shape): Shape {
  const dropped = draft.random.below(shape.length + 1);
  return shape.slice(draft.chance(0.5) ? 0 : dropped).map((extent) => (draft.chance(0.25) ? 1 : extent));
}

const axisOf = (draft: Draft, x: Value): number => draft.random.below(x.shape.length);

const certainOf = (...values: Value[]): boolean => values.every(({ certain }) => certain);

const simple =
  (op: string, facts: (x: Value) => Partial<Value>): Growth =>
  (draft, x) =>
    draft.op(op, [x], facts(x));

export const UNARY: readonly Growth[] = [
  simple("neg", ({ certain }) => ({ certain })),
  simple("abs", ({ certain }) => ({ low: 0, certain })),
  simple("relu", ({ certain }) => ({ low: 0, certain })),
  simple("tanh", () => ({ bound: 1, low: -1 })),
  simple("sigmoid", () => ({ bound: 1, low: 0 })),
  simple("gelu", () => ({ low: -1 })),
  simple("erf", () => ({ bound: 1, low: -1 })),
  simple("sin", () => ({ bound: 1, low: -1 })),
  simple("cos", () => ({ bound: 1, low: -1 })),
  simple("silu", () => ({ low: -1 })),
  simple("geluTanh", () => ({ low: -1 })),
  simple("softplus", ({ bound }) => ({ low: 0, bound: bound + 1 })),
  simple("leakyRelu", ({ certain }) => ({ certain })),
  (draft, x) => (x.bound > 4 ? null : draft.op("exp", [x], { bound: Math.exp(x.bound), low: 0 })),
  (draft, x) => draft.op("log", [positive(draft, x)], { bound: 6 }),
  (draft, x) => draft.op("sqrt", [positive(draft, x)], { low: 0.5 }),
  (draft, x) =>
    draft.op("pow", [positive(draft, x), draft.random.pick([2, 0.5, -1, 1.5])], { bound: x.bound ** 2 + 4 }),
  (draft, x) => {
    const dtype = draft.random.pick<DType>(["f32", "f64", "bf16", "f16"]);
    return draft.op("to", [x], { certain: x.certain, low: x.low }, { dtype, from: x.dtype });
  },
  (draft, x) => (x.certain ? draft.op("clone", [x], { certain: true }) : draft.op("clone", [x], {})),
];

const number = (draft: Draft): number => draft.random.pick([2, -1, 0.5, 0.25, 1.5, 3, -0.75]);

function both(op: string, bound: (a: number, b: number) => number): Growth {
  return (draft, x) => {
    if (draft.chance(0.2)) {
      const n = draft.inBody && draft.chance(0.3) ? draft.argument("k") : number(draft);
      const size = typeof n === "number" ? Math.abs(n) : 2;
      return draft.op(op, draft.chance(0.7) ? [x, n] : [n, x], { bound: bound(x.bound, size) });
    }
    const y = partner(draft, x);
    const operands = draft.chance(0.5) ? [x, y] : [y, x];
    return draft.op(op, operands, { bound: bound(x.bound, y.bound) });
  };
}

const reduce =
  (op: "sum" | "mean" | "max"): Growth =>
  (draft, x) => {
    if (x.shape.length === 0 || (op !== "sum" && draft.isEmpty(x))) return null;
    const axes = x.shape.map((_, i) => i).filter(() => draft.chance(0.5));
    if (axes.length === 0) axes.push(axisOf(draft, x));
    const count = op === "sum" ? sizeOf(axes.map((axis) => x.shape[axis]!)) : 1;
    const axis = axes.length === 1 ? axes[0]! - (draft.chance(0.2) ? x.shape.length : 0) : axes;
    return draft.op(
      op,
      [x],
      { bound: x.bound * count, certain: op === "max" && x.certain },
      {
        axis,
        keepDim: draft.chance(0.5),
      },
    );
  };

export const OTHERS: readonly Growth[] = [
  both("add", (a, b) => a + b),
  both("sub", (a, b) => a + b),
  both("mul", (a, b) => a * b),
  both("mul", (a, b) => a * b),
  both("maximum", Math.max),
  both("minimum", Math.max),
  (draft, x) => {
    const y = positive(draft, partner(draft, x));
    return draft.op("div", [x, y], { bound: 2 * x.bound });
  },
  (draft, x) => {
    const [y, z] = [partner(draft, x), x];
    return draft.op("fma", [x, y, z], { bound: x.bound * y.bound + z.bound });
  },
  (draft, x) => {
    const chosen = condition(draft, x.shape);
    if (chosen === null) return null;
    return draft.op("select", draft.chance(0.5) ? [chosen, x, number(draft)] : [chosen, x, x], {});
  },
  reduce("sum"),
  reduce("mean"),
  reduce("max"),
  (draft, x) => {
    if (x.shape.length < 1) return null;
    const k = x.shape.at(-1)!;
    const n = draft.random.pick([1, 2, 3, 5, 8]);
    const [transposeA, transposeB] = [draft.chance(0.2) && x.shape.length >= 2, draft.chance(0.3)];
    if (x.shape.length === 1) return null;
    const inner = transposeA ? x.shape.at(-2)! : k;
    const leading = draft.chance(0.3) ? x.shape.slice(0, -2) : [];
    const other = draft.ofShape([...leading, ...(transposeB ? [n, inner] : [inner, n])]);
    return draft.op(
      "matmul",
      [x, tamed(draft, other)],
      { bound: x.bound * other.bound * inner },
      { transposeA, transposeB },
    );
  },
  (draft, x) => {
    if (x.shape.length === 0 || draft.isEmpty(x)) return null;
    const axis = draft.chance(0.6) ? -1 : axisOf(draft, x);
    return draft.chance(0.5)
      ? draft.op("softmax", [x], { bound: 1, low: 0 }, { axis })
      : draft.op("logSoftmax", [x], { bound: 2 * x.bound + 6 }, { axis });
  },
  (draft, x) => {
    if (x.shape.length === 0 || draft.isEmpty(x) || x.shape.at(-1)! < 3) return null;
    const trailing = x.shape.slice(-1);
    const dtype = x.dtype;
    const weight = draft.leaf("parameter", trailing, dtype);
    const bias = draft.leaf("parameter", trailing, dtype);
    return draft.op("layerNorm", [x, weight, bias], { bound: 4 * Math.sqrt(x.shape.at(-1)!) + 4 });
  },
  (draft, x) => {
    const labels = x.shape.slice(0, -1);
    if (x.shape.length === 0 || x.shape.at(-1)! < 2 || sizeOf(labels) === 0) return null;
    const chosen = draft.leaf("data", labels, "i32", { ...draft.fill("whole"), below: x.shape.at(-1)! });
    return draft.op("crossEntropy", [x, chosen], { bound: 2 * x.bound + 6 });
  },
  (draft, x) => {
    if (x.shape.length === 0 || x.shape[0] === 0) return null;
    const shape = draft.random.pick<Shape>([[3], [2, 2], [5], [1], []]);
    const indices = draft.leaf("data", shape, "i32", {
      ...draft.fill("whole"),
      below: x.shape[0]!,
    });
    return draft.op("gather", [x, indices], { certain: x.certain, low: x.low });
  },
  (draft, x) => {
    // Integers beside floats.
    const whole = draft.leaf("data", stretchable(draft, x.shape), draft.random.pick<DType>(["i32", "u8", "bool"]), {
      ...draft.fill("whole"),
      below: 3,
    });
    if (whole.dtype === "bool") return draft.op("select", [whole, x, 0], {});
    const other = draft.chance(0.5) ? draft.op("mul", [whole, 2], { bound: 6, certain: true }) : whole;
    return draft.op(draft.random.pick(["add", "mul"]), [x, other], { bound: 6 * x.bound + 6 });
  },
  (draft, x) => {
    if (x.shape.length !== 4 || x.shape[2]! < 2 || x.shape[3]! < 2 || draft.isEmpty(x)) return null;
    const [stride, padding] = [draft.random.pick([1, 2]), draft.random.pick([0, 1])];
    const weight = draft.leaf("parameter", [draft.random.pick([1, 2]), x.shape[1]!, 2, 2], x.dtype);
    return draft.op("conv2d", [x, weight], { bound: x.bound * 4 * 4 * x.shape[1]! }, { stride, padding });
  },
  (draft, x) => {
    if (x.shape.length !== 4 || x.shape[2]! < 2 || x.shape[3]! < 2 || draft.isEmpty(x)) return null;
    return draft.op("avgPool2d", [x], { low: x.low }, { kernel: 2, stride: draft.random.pick([1, 2]) });
  },
  (draft, x) => {
    if (x.shape.length !== 4 || x.shape[2]! < 2 || x.shape[3]! < 2 || draft.isEmpty(x)) return null;
    return draft.op(
      "maxPool2d",
      [x],
      { certain: x.certain, low: x.low },
      { kernel: 2, stride: draft.random.pick([1, 2]) },
    );
  },
];

/** A shape of the same size. */
function reshaped(draft: Draft, shape: Shape): Shape {
  const size = sizeOf(shape);
  if (draft.chance(0.3) && shape.length !== 1) return [size];
  if (draft.chance(0.3)) return shape.toSpliced(draft.random.below(shape.length + 1), 0, 1);
  const divisors = [2, 3, 4, 5].filter((d) => size % d === 0 && size > 0);
  if (divisors.length === 0) return [1, size];
  const d = draft.random.pick(divisors);
  return draft.chance(0.5) ? [d, size / d] : [size / d, d];
}

export const MOVES: readonly Growth[] = [
  (draft, x) => {
    const shape = draft.chance(0.1) ? x.shape : reshaped(draft, x.shape);
    return draft.op("reshape", [x], { certain: x.certain, low: x.low }, { shape });
  },
  (draft, x) => {
    if (x.shape.length === 0) return null;
    const axis = axisOf(draft, x);
    const extent = x.shape[axis]!;
    const start = draft.random.below(extent + 1);
    const end = draft.chance(0.9) ? Math.min(extent, start + 1 + draft.random.below(extent + 1)) : start;
    const cut = draft.chance(0.3) && start > 0 ? start - extent : start;
    return draft.op("slice", [x], { certain: x.certain, low: x.low }, { start: cut, end, axis });
  },
  (draft, x) => {
    const axes = x.shape.map((_, i) => i);
    for (let i = axes.length - 1; i > 0; i--) {
      const j = draft.random.below(i + 1);
      [axes[i], axes[j]] = [axes[j]!, axes[i]!];
    }
    return draft.op("permute", [x], { certain: x.certain, low: x.low }, { axes });
  },
  (draft, x) => (x.shape.length < 2 ? null : draft.op("transpose", [x], { certain: x.certain, low: x.low })),
  (draft, x) => {
    if (x.shape.length === 0) return null;
    const axis = axisOf(draft, x);
    const others = draft
      .floats()
      .filter(
        ({ shape, dtype }) =>
          dtype === x.dtype &&
          String(shape.toSpliced(axis, 1)) === String(x.shape.toSpliced(axis, 1)) &&
          shape.length === x.shape.length,
      );
    const list = draft.chance(0.3) ? [x, x] : [x, draft.random.pick(others), x].slice(0, 2 + draft.random.below(2));
    if (sizeOf(x.shape) * 3 > MOST) return null;
    return draft.op(
      "concat",
      list,
      { certain: certainOf(...list), low: NO_LIMIT, bound: Math.max(...list.map(({ bound }) => bound)) },
      { axis },
    );
  },
  (draft, x) => (draft.chance(0.3) ? draft.op("detach", [x], { certain: x.certain, low: x.low }) : null),
];

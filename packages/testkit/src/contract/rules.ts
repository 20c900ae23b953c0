/** Rules made to try every op and every shape of a rule; the optimizers' own come from their packages. */
import {
  abs,
  add,
  defineRule,
  div,
  type Expression,
  fma,
  less,
  maximum,
  minimum,
  mul,
  neg,
  type Rule,
  sqrt,
  sub,
  where,
} from "@opt/core";

const arithmetic = defineRule({
  name: "arithmetic",
  buffers: ["a", "b", "c"],
  scalars: ["s"],
  update: ({ a, b, c }, { s }) => ({
    a: sub(mul(add(a, b), s), div(b, c)),
    c: add(abs(c), neg(mul(a, 0.1))),
  }),
});

const roots = defineRule({
  name: "roots",
  buffers: ["x", "y", "z"],
  scalars: ["s"],
  update: ({ x, y, z }, { s }) => ({ x: fma(x, y, z), y: sqrt(y), z: fma(s, sub(x, z), sqrt(abs(x))) }),
});

const choices = defineRule({
  name: "choices",
  buffers: ["a", "b", "largest", "smallest", "chosen"],
  scalars: [],
  update: ({ a, b, largest, chosen }) => ({
    largest: maximum(a, b),
    smallest: minimum(a, b),
    chosen: where(less(a, b), chosen, where(less(largest, 0), neg(a), 1)),
  }),
});

/** Called as languages call what is theirs, and as generated text calls its own: keywords, functions, counters, temporaries, new values. */
const namesakes = defineRule({
  name: "namesakes",
  buffers: ["heap0", "const", "t0", "heap0New"],
  scalars: ["fma", "nanBits", "lane", "given"],
  update: ({ heap0, const: constant, t0, heap0New }, { fma: factor, nanBits, lane, given }) => {
    const sum = fma(factor, constant, mul(heap0, lane));
    return { heap0: sum, const: add(mul(t0, nanBits), sum), heap0New: sub(heap0New, mul(given, t0)) };
  },
});

/** Lion, as a program that knows nothing of the kernels would add it (Chen et al. 2023): the sign by two selects. */
const lion = defineRule({
  name: "lion",
  buffers: ["param", "grad", "momentum"],
  scalars: ["oneMinusBeta1", "oneMinusBeta2", "negLr", "decay"],
  update({ param, grad, momentum }, { oneMinusBeta1, oneMinusBeta2, negLr, decay }) {
    const direction = fma(oneMinusBeta1, sub(grad, momentum), momentum);
    const sign = where(less(direction, 0), -1, where(less(0, direction), 1, direction));
    return {
      param: fma(negLr, sign, mul(param, decay)),
      momentum: fma(oneMinusBeta2, sub(grad, momentum), momentum),
    };
  },
});

/** All reads see the old values, so two writes can exchange buffers. */
const exchange = defineRule({
  name: "exchange",
  buffers: ["left", "right", "middle"],
  scalars: [],
  update: ({ left, right }) => ({ left: right, right: left }),
});

/** Constants of every kind, and stores that read nothing. */
const constants = defineRule({
  name: "constants",
  buffers: ["x", "y", "z", "w"],
  scalars: ["s"],
  update: ({ x }, { s }) => ({
    x: add(where(less(x, Number.POSITIVE_INFINITY), mul(x, 1 / 3), Number.NaN), -0),
    y: add<Expression>(-0, -0),
    z: mul(s, sqrt(s)),
    w: where(less(s, 0.5), 2 ** -149, Number.NEGATIVE_INFINITY),
  }),
});

/** Uniform conditions, values used many times, and as many buffers as fit a WebGPU stage. */
const shared = defineRule({
  name: "shared",
  buffers: ["a", "b", "c", "d", "e", "f", "g", "h"],
  scalars: ["s", "t"],
  update({ a, b, c, d, e, f, g, h }, { s, t }) {
    const sum = add(add(add(a, b), add(c, d)), add(add(e, f), add(g, h)));
    const scaled = mul(sum, where(less(s, t), s, t));
    return {
      a: scaled,
      b: sub(scaled, sum),
      c: maximum(scaled, sum),
      d: fma(scaled, scaled, sum),
      h: minimum(sum, mul(s, t)),
    };
  },
});

export const BUILTIN_RULES: readonly Rule[] = [
  arithmetic,
  roots,
  choices,
  lion,
  exchange,
  constants,
  shared,
  namesakes,
];

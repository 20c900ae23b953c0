/** Rare arguments of elementwise ops: one bound, bounds of tensors, decimals, powers, slopes, kinks, and arrays longer than a block. */
import type { CallInput } from "@opt/testkit";
import * as F from "../../src/functions";
import type { Tensor } from "../../src/tensor/tensor";
import type { Draw, Row, Shape } from "../draw";

/** Numbers between kinks, on them, and far from them. */
const wide = (draw: Draw, shape: Shape): CallInput => {
  const { values, ...rest } = draw.numbers(shape, { low: -9, high: 9 });
  return {
    ...rest,
    values: Array.from(values, (value) => (draw.int(12) === 0 ? draw.random.pick([-200, -40, 25, 300]) : value)),
  };
};

const of =
  (args: (draw: Draw) => readonly [code: string, run: (x: Tensor) => Tensor], second = true): Row =>
  (draw) => {
    const shape = draw.sizes(1 + draw.int(3), 1030);
    const [code, run] = args(draw);
    return { inputs: [wide(draw, shape)], code, run: (x) => run(x!), ...(!second && { second }) };
  };

const quarter = (draw: Draw, low: number, high: number) => (low + draw.int(high - low + 1)) / 4;

export const ELEMENTWISE: Readonly<Record<string, Row>> = {
  "clamp by one number": of((draw) => {
    const bound = quarter(draw, -8, 8);
    return draw.flip()
      ? [`a.clamp(min=${bound})`, (x) => x.clamp(bound)]
      : [`a.clamp(max=${bound})`, (x) => x.clamp(null, bound)];
  }),
  "clamp by crossed numbers": of((draw) => {
    const [low, high] = [quarter(draw, -8, 8), quarter(draw, -8, 8)];
    return [`a.clamp(${low}, ${high})`, (x) => x.clamp(low, high)];
  }),
  "clamp by one tensor": (draw) => {
    const shape = draw.sizes(2);
    const below = draw.flip();
    return {
      inputs: [draw.numbers(shape), draw.numbers(draw.flip() ? shape : shape.slice(1))],
      code: below ? "a.clamp(min=b)" : "a.clamp(max=b)",
      run: (a, b) => (below ? a!.clamp(b!) : a!.clamp(null, b!)),
    };
  },
  "round to decimals": of((draw) => {
    const decimals = draw.int(6) - 2;
    return [`a.round(decimals=${decimals})`, (x) => F.round(x, { decimals })];
  }),
  "pow by a number": (draw) => {
    const power = draw.random.pick([-3, -2, -1, -0.5, 0.5, 1.5, 2.5, 4, 5]);
    return {
      inputs: [draw.numbers(draw.sizes(2, 1030), { positive: true })],
      code: `a ** ${power}`,
      run: (x) => x!.pow(power),
    };
  },
  "pow by whole numbers": (draw) => {
    const shape = draw.sizes(2);
    const powers = Array.from({ length: shape[1]! }, () => draw.int(6) - 2);
    const exponent = { values: powers, shape: [shape[1]!], dtype: draw.dtype } as const;
    return {
      inputs: [draw.numbers(shape, { low: 0.5, high: 2 }), exponent],
      code: "a * 0 + (-a) ** b",
      run: (a, b) => a!.mul(0).add(a!.neg().pow(b!)),
    };
  },
  "pow of 0": (draw) => ({
    inputs: [
      { values: [0, 0, 0, 0, 2], shape: [5], dtype: draw.dtype, requiresGrad: true },
      { values: [0, 1, 2, 0.5, 0], shape: [5], dtype: draw.dtype },
    ],
    code: "a ** b",
    run: (a, b) => a!.pow(b!),
    second: false,
  }),
  "leakyRelu by slopes": of((draw) => {
    const slope = draw.random.pick([0, -0.5, 1, 3, 0.01]);
    return [`F.leaky_relu(a, ${slope})`, (x) => F.leakyRelu(x, slope)];
  }),
  "softplus by beta": of((draw) => {
    const [beta, threshold] = [draw.random.pick([0.1, 0.5, 2, 10]), draw.random.pick([0.5, 3, 20])];
    return [`F.softplus(a, ${beta}, ${threshold})`, (x) => F.softplus(x, beta, threshold)];
  }),
  "elu by alpha": of((draw) => {
    const alpha = draw.random.pick([0, 0.3, 1, 2.5]);
    return [`F.elu(a, ${alpha})`, (x) => F.elu(x, alpha)];
  }),
  "hardtanh by bounds": of((draw) => {
    const [low, high] = [quarter(draw, -12, 0), quarter(draw, 1, 12)];
    return [`F.hardtanh(a, ${low}, ${high})`, (x) => F.hardtanh(x, low, high)];
  }),
  "gelu far out": of((draw) =>
    draw.flip()
      ? ["F.gelu(a)", (x) => F.gelu(x, { approximate: "none" })]
      : ['F.gelu(a, approximate="tanh")', (x) => F.gelu(x, { approximate: "tanh" })],
  ),
  "activations far out": (draw) => {
    const [code, run] = draw.random.pick<readonly [string, (x: Tensor) => Tensor]>([
      ["F.silu(a)", F.silu],
      ["F.selu(a)", F.selu],
      ["F.relu6(a)", F.relu6],
      ["F.hardswish(a)", F.hardswish],
      ["F.mish(a)", F.mish],
      ["F.logsigmoid(a)", F.logsigmoid],
      ["a.sigmoid()", F.sigmoid],
      ["a.tanh()", F.tanh],
      ["torch.erf(a)", F.erf],
    ]);
    // Where an exponential overflows, PyTorch's second gradients are NaN.
    return { inputs: [wide(draw, draw.sizes(2, 1030))], code, run: (x) => run(x!), second: draw.dtype === "f64" };
  },
  "lerp by a number": (draw) => {
    const weight = draw.random.pick([0, 0.25, 0.5, 0.75, 1, 1.5, -1]);
    const shape = draw.sizes(2);
    return {
      inputs: [draw.numbers(shape), draw.numbers(shape)],
      code: `torch.lerp(a, b, ${weight})`,
      run: (a, b) => F.lerp(a!, b!, weight),
    };
  },
  "logaddexp far out": (draw) => {
    const shape = draw.sizes(2);
    return {
      inputs: [wide(draw, shape), wide(draw, shape.slice(1))],
      code: "torch.logaddexp(a, b)",
      run: (a, b) => F.logaddexp(a!, b!),
      second: draw.dtype === "f64",
    };
  },
  "logaddexp of -Infinity": (draw) => {
    const x = draw.numbers([6], { requiresGrad: false });
    const holes = (given: CallInput) => ({
      ...given,
      values: Array.from(given.values, (v) => (draw.flip() ? -Infinity : v)),
    });
    return {
      inputs: [holes(x), holes(draw.numbers([6], { requiresGrad: false }))],
      code: "torch.logaddexp(a, b)",
      run: (a, b) => F.logaddexp(a!, b!),
    };
  },
  "maximum of equals": (draw) => {
    const shape = draw.sizes(2);
    const tied = (of: Shape): CallInput => {
      const { values, ...rest } = draw.numbers(of);
      return { ...rest, values: Array.from(values, () => draw.int(3) - 1) };
    };
    const least = draw.flip();
    return {
      inputs: [tied(shape), tied(shape.slice(1))],
      code: least ? "torch.minimum(a, b)" : "torch.maximum(a, b)",
      run: (a, b) => (least ? a!.minimum(b!) : a!.maximum(b!)),
    };
  },
  "where that broadcasts": (draw) => {
    const [m, n] = [1 + draw.int(4), 1 + draw.int(4)];
    const [first, second] = [draw.random.pick([[m, n], [n], [1, n], []]), draw.random.pick([[m, n], [m, 1], []])];
    return {
      inputs: [
        draw.whole(draw.random.pick([[m, 1], [n], [2, m, n]]), 2, "bool"),
        draw.numbers(first),
        draw.numbers(second),
      ],
      code: "torch.where(a, b, c)",
      run: (a, b, c) => F.where(a!, b!, c!),
    };
  },
  "maskedFill that broadcasts": (draw) => {
    const [m, n] = [1 + draw.int(4), 1 + draw.int(4)];
    const value = draw.random.pick([0, 2.5, -Infinity]);
    return {
      inputs: [draw.numbers([m, n]), draw.whole(draw.random.pick([[m, 1], [n], [1, n]]), 2, "bool")],
      code: `a.masked_fill(b, ${String(value).replace("Infinity", "inf")})`,
      run: (a, b) => F.maskedFill(a!, b!, value),
    };
  },
  "prelu of channels": (draw) => {
    const shape = draw.sizes(1 + draw.int(4), 40);
    const x = draw.numbers(shape);
    const channels = draw.flip() || shape.length < 2 ? 1 : shape[1]!;
    return {
      // At 0, PyTorch's second gradients take another side than its first.
      inputs: [{ ...x, values: Array.from(x.values, (value) => value || 0.25) }, draw.numbers([channels])],
      code: "F.prelu(a, b)",
      run: (a, b) => F.prelu(a!, b!),
    };
  },
  "comparisons with a number": (draw) => {
    const bound = quarter(draw, -4, 4);
    return {
      inputs: [
        { ...draw.numbers([17]), values: Array.from({ length: 17 }, (_, i) => (i - 8) / 4), requiresGrad: false },
      ],
      code: `[a < ${bound}, a <= ${bound}, a > ${bound}, a >= ${bound}, a == ${bound}, a != ${bound}, ${bound} < a]`,
      run: (a) => [a!.lt(bound), a!.le(bound), a!.gt(bound), a!.ge(bound), a!.eq(bound), a!.ne(bound), F.lt(bound, a!)],
    };
  },
};

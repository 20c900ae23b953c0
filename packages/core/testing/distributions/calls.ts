/** Random calls of distributions that PyTorch judges: as many of each name. */
import { Random, type Sweep, type TorchCall } from "@opt/testkit";
import {
  AffineTransform,
  ComposeTransform,
  ExpTransform,
  Normal,
  SigmoidTransform,
  TanhTransform,
  type Transform,
  TransformedDistribution,
} from "../../src/distributions";
import { dirichletSlope } from "../../src/distributions/sampling/dirichlet-slope";
import { standardGammaSlope } from "../../src/distributions/sampling/standard-gamma";
import type { Tensor } from "../../src/tensor/tensor";
import { Draw } from "../draw";
import { callOf, callOutside, FAMILIES, type Method } from "./families";
import { divergenceCall, EDGES, PAIRS } from "./pairs";

type Drawn = Omit<TorchCall, "name">;
type DrawnBy = (draw: Draw) => Drawn;

const TOLERANCES = { f64: 1e-10, f32: 1e-5, f16: 1e-2, bf16: 8e-2 } as const;
/** Their gradients are of PyTorch's trigamma, of which 9 digits are right. */
const OF_DIGAMMA = /^(?!.*gradient of).*(StudentT|Gamma|Beta|Dirichlet)/;
const DIGITS_OF_TRIGAMMA = 2e-9;

const OF_VECTORS = /Categorical|Dirichlet|Multivariate|Independent/;

/** Of two tensors: loc and scale. */
const TRANSFORMS: Readonly<Record<string, readonly [make: (...given: Tensor[]) => Transform, torch: string]>> = {
  ExpTransform: [() => new ExpTransform(), "ExpTransform()"],
  SigmoidTransform: [() => new SigmoidTransform(), "SigmoidTransform()"],
  TanhTransform: [() => new TanhTransform(), "TanhTransform()"],
  AffineTransform: [(a, b) => new AffineTransform(a!, b!), "AffineTransform(a, b)"],
  "AffineTransform of vectors": [
    (a, b) => new AffineTransform(a!, b!, { eventDim: 1 }),
    "AffineTransform(a, b, event_dim=1)",
  ],
  "inverse of an AffineTransform": [(a, b) => new AffineTransform(a!, b!).inv, "AffineTransform(a, b).inv"],
  ComposeTransform: [
    (a, b) => new ComposeTransform([new AffineTransform(a!, b!), new TanhTransform(), new AffineTransform(1, -2)]),
    "ComposeTransform([T.AffineTransform(a, b), T.TanhTransform(), T.AffineTransform(1, -2)])",
  ],
  "inverse of a ComposeTransform": [
    (a, b) => new ComposeTransform([new SigmoidTransform().inv, new AffineTransform(a!, b!)]).inv,
    "ComposeTransform([T.SigmoidTransform().inv, T.AffineTransform(a, b)]).inv",
  ],
};

/** Parameters of a transform, and x; y is what PyTorch makes of it. */
const transformCall =
  (name: string): DrawnBy =>
  (draw) => {
    const [make, torch] = TRANSFORMS[name]!;
    const shape = draw.flip() ? [1 + draw.int(4), 1 + draw.int(3)] : [1 + draw.int(3)];
    const own = draw.flip() ? shape : shape.slice(-1);
    const sign = draw.flip() ? 1 : -1;
    const inputs = [
      draw.numbers(own, { low: -1, high: 1 }),
      draw.numbers(own, { low: sign * 0.4, high: sign * 1.5 }),
      draw.numbers(shape, { low: -1.2, high: 1.2 }),
    ];
    const t = `T = torch.distributions;;t = T.${torch};;`;
    const part = draw.random.pick(["forward", "inverse", "stretch"] as const);
    const code = { forward: "t(c)", inverse: "t.inv(t(c))", stretch: "t.log_abs_det_jacobian(c, t(c))" }[part];
    const run = (a: Tensor, b: Tensor, x: Tensor) => {
      const transform = make(a, b);
      const y = transform.forward(x);
      if (part === "forward") return y;
      return part === "inverse" ? transform.inverse(y) : transform.logAbsDetJacobian(x, y);
    };
    return { inputs, code: t + code, run: run as TorchCall["run"] };
  };

/** Of normal numbers. */
const transformedCall =
  (name: string): DrawnBy =>
  (draw) => {
    const drawn = transformCall(name)(draw);
    const [make, torch] = TRANSFORMS[name]!;
    const method = draw.random.pick(
      name.includes("vectors") ? ["logProb" as const] : (["logProb", "cdf", "icdf"] as const),
    );
    const code = `T = torch.distributions;;d = T.TransformedDistribution(T.Normal(c * 0, 1), T.${torch});;`;
    const ours = (a: Tensor, b: Tensor, c: Tensor) => new TransformedDistribution(new Normal(c.mul(0), 1), make(a, b));
    const value = (a: Tensor, b: Tensor, c: Tensor) => make(a, b).forward(c);
    if (method === "icdf")
      return {
        ...drawn,
        code: `${code}d.icdf(torch.sigmoid(c))`,
        run: (a, b, c) => ours(a!, b!, c!).icdf(c!.sigmoid()),
      };
    return {
      ...drawn,
      code: `${code}d.${method === "cdf" ? "cdf" : "log_prob"}(T.${torch}(c))`,
      run: (a, b, c) => ours(a!, b!, c!)[method](value(a!, b!, c!)),
    };
  };

/** Slopes of samples, in all regions of their formulas. */
const SLOPES: Readonly<Record<string, DrawnBy>> = {
  "gradient of standardGamma": (draw) => {
    const shape = [1 + draw.int(8)];
    const alpha = draw.numbers(shape, draw.flip() ? { low: 0.07, high: 8 } : { low: 8, high: 40 });
    const near = draw.numbers(shape, { low: draw.flip() ? 0.07 : 0.9, high: draw.flip() ? 1.1 : 2 });
    const values = Array.from(near.values, (share, i) => share * alpha.values[i]!);
    return plain([alpha, { ...near, values }], "torch._standard_gamma_grad(a, b)", (a, b) =>
      standardGammaSlope(a!, b!),
    );
  },
  "gradient of Dirichlet": (draw) => {
    const shape = [1 + draw.int(8)];
    const alpha = draw.numbers(shape, draw.flip() ? { low: 0.1, high: 6 } : { low: 6, high: 30 });
    const beta = draw.numbers(shape, draw.flip() ? { low: 0.1, high: 6 } : { low: 6, high: 30 });
    const places = draw.numbers(shape, draw.flip() ? { low: -0.5, high: 0.5 } : { low: -5, high: 5 });
    const x = { ...places, values: Array.from(places.values, (place) => 1 / (1 + Math.exp(-place))) };
    return plain([x, alpha, beta], "torch._dirichlet_grad(a, b, b + c)", (a, b, c) =>
      dirichletSlope(a!, b!, b!.add(c!)),
    );
  },
};

const plain = (inputs: Drawn["inputs"], code: string, run: TorchCall["run"]): Drawn => ({
  inputs: inputs.map((given) => ({ ...given, requiresGrad: false })),
  code,
  run,
});

const ROWS: Readonly<Record<string, DrawnBy>> = {
  ...Object.fromEntries(Object.keys(FAMILIES).map((name) => [name, (draw: Draw) => callOf(name, draw)])),
  ...Object.fromEntries(
    PAIRS.map((pair) => [`klDivergence ${pair.join(", ")}`, (draw: Draw) => divergenceCall(pair, draw)]),
  ),
  ...Object.fromEntries(Object.keys(TRANSFORMS).map((name) => [name, transformCall(name)])),
  ...Object.fromEntries(
    Object.keys(TRANSFORMS).map((name) => [`TransformedDistribution by ${name}`, transformedCall(name)]),
  ),
  ...SLOPES,
};

function called(
  name: string,
  seed: number,
  drawn: DrawnBy,
  dtypes: readonly ("f64" | "f32" | "f16" | "bf16")[],
): TorchCall {
  const draw = new Draw(new Random(seed), dtypes);
  const call = drawn(draw);
  const usual = TOLERANCES[draw.dtype];
  const tolerance = OF_DIGAMMA.test(name) ? Math.max(usual, DIGITS_OF_TRIGAMMA) : usual;
  const second = draw.dtype === "f64" || draw.dtype === "f32" || "presence";
  return {
    second,
    ...call,
    tolerance: { absolute: tolerance, relative: tolerance },
    name: `${name}: ${call.inputs.map(({ dtype, shape }) => `${dtype} [${shape}]`).join(", ")}`,
  };
}

/** So many calls of each row. */
export function distributionSweep(count: number): Sweep {
  return Object.fromEntries(
    Object.entries(ROWS).map(([name, drawn], row) => [
      name,
      Array.from({ length: count }, (_, i) =>
        called(`${i} ${name}`, 31 + row + 1_000_003 * i, drawn, ["f64", "f64", "f32"]),
      ),
    ]),
  );
}

/** Every method of every distribution once, and rows of the others. */
export function distributionCalls(): TorchCall[] {
  const methods = (atEdges: boolean) =>
    Object.entries(FAMILIES).flatMap(([name, family]) =>
      (["logProb", ...family.methods] as const).map((method: Method | "logProb"): [string, DrawnBy] => [
        `${name} ${method}${atEdges ? " at edges" : ""}`,
        (draw) => callOf(name, draw, method, atEdges),
      ]),
    );
  const atEdges = methods(true).filter(([name]) => !name.startsWith("Multivariate")); // of which wholes are no matrices
  const outside = Object.entries(FAMILIES).flatMap(([name, { methods }]) =>
    (["logProb", ...methods] as const).flatMap((method): [string, DrawnBy][] =>
      (method === "logProb" || method === "cdf") && !OF_VECTORS.test(name)
        ? [[`${name} ${method} outside`, (draw) => callOutside(name, draw, method)]]
        : [],
    ),
  );
  const divergences = EDGES.map((pair): [string, DrawnBy] => [
    `klDivergence ${pair.join(", ")} at edges`,
    (draw) => divergenceCall(pair, draw, true),
  ]);
  const others = Object.entries(ROWS).filter(([name]) => !(name in FAMILIES));
  return [...methods(false), ...others, ...atEdges, ...outside, ...divergences].map(([name, drawn], i) =>
    called(name, 977 + i, drawn, i % 3 === 0 ? ["f32"] : ["f64"]),
  );
}

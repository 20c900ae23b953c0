// The modifications of every optimizer, against a plain program around the same optimizer without them.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import {
  compile,
  type Device,
  functional,
  type GroupOptions,
  l1,
  parameter,
  type Tensor,
  tensor,
  zeros,
} from "@opt/core";
import { EXACT_DEVICES, eachDevice, expectCode, Random } from "@opt/testkit";
import { workspaceOptimizers } from "@opt/testkit/optimizers";
import { describe, expect, it } from "vitest";
import { Adam, AdamW, ASGD, Lamb, NAdam, ScheduleFreeAdamW, SGD, Yogi } from "./index";

type Modifications = Pick<GroupOptions, "cautious" | "decay" | "mars" | "hyperball" | "centralize">;
interface Stepped {
  step(): void;
  readonly groups: readonly Readonly<Record<string, unknown>>[];
}
type Make = (params: Tensor[], options: object) => Stepped;

/** Those that step dense gradients; averages of parameters go with nothing that changes the update. */
const OPTIMIZERS = (await workspaceOptimizers())
  .filter(({ runs }) => runs.length > 0)
  .map(({ name, Optimizer, runs }) => ({
    name,
    runs,
    isAverage: name === "ASGD" || name === "ScheduleFreeAdamW",
    hasVectors: name !== "Muon",
    findsRate: ["DAdaptAdamW", "Prodigy"].includes(name),
    usesProducts: ["APOLLO", "GaLore", "SOAP", "Shampoo", "Kron"].includes(name),
    make: ((params, options) => new Optimizer(params, options) as unknown as Stepped) as Make,
  }));

const MATRIX = [4, 3] as const;
const VECTOR = [3] as const;
/** Where gradients have equal singular values, each program finds other bases: a square has none. */
const matrixOf = (name: string) => (name === "SOAP" ? ([3, 3] as const) : MATRIX);
const numbersAt = (t: number, k: number, size: number) => {
  const random = new Random(1000 * t + 10 * k);
  return Array.from({ length: size }, () => random.word() / 2 ** 31 - 1);
};
const norm = (x: readonly number[]) => Math.hypot(...x);

/** `modifications` of one parameter in float64, by numbers. */
class Plain {
  readonly #twin: Tensor;
  readonly #optimizer: Stepped;
  #last: number[];
  #radius = 0;
  values: number[];

  constructor(
    make: Make,
    private readonly shape: readonly number[],
    private readonly options: Modifications & Readonly<Record<string, unknown>>,
    first: readonly number[],
    private readonly isDecoupled: boolean,
  ) {
    const { cautious, decay, mars, hyperball, centralize, ...own } = options;
    const isOutside = decay != null || ((cautious || hyperball) && isDecoupled);
    this.#twin = parameter(tensor([...first], { dtype: "f64" }).reshape([...shape]));
    this.#optimizer = make([this.#twin], isOutside && "weightDecay" in own ? { ...own, weightDecay: 0 } : own);
    this.values = [...first];
    this.#last = first.map(() => 0);
  }

  step(given: readonly number[]): void {
    const {
      cautious,
      decay,
      mars,
      hyperball,
      centralize,
      weightDecay = 0,
    } = this.options as Modifications & {
      weightDecay?: number;
    };
    const { lr, betas, momentum } = this.#optimizer.groups[0] as {
      lr: number;
      betas?: readonly number[];
      momentum?: number;
    };
    const isMatrix = this.shape.length > 1;
    const columns = this.shape[1] ?? 1;
    const p = this.values;
    let g = decay === "l2" ? given.map((x, i) => x + weightDecay * p[i]!) : [...given];
    if (centralize && isMatrix) {
      const rows = g;
      g = g.map((x, i) => {
        const row = rows.slice(i - (i % columns), i - (i % columns) + columns);
        return x - row.reduce((a, b) => a + b, 0) / columns;
      });
    }
    if (mars) {
      const beta1 = betas?.[0] ?? momentum!;
      const c = g.map((x, i) => x + ((mars.gamma * beta1) / (1 - beta1)) * (x - this.#last[i]!));
      this.#last = g;
      g = c.map((x) => x / Math.max(norm(c), 1));
    }
    const goes = decay ?? ((cautious || hyperball) && this.isDecoupled ? "decoupled" : null);
    this.#twin.set(tensor(p, { dtype: "f64" }).reshape([...this.shape]));
    this.#twin.grad = tensor(g, { dtype: "f64" }).reshape([...this.shape]);
    this.#optimizer.step();
    const stepped = [...(this.#twin.dataSync() as Float64Array)];
    let way = stepped.map((x, i) => x - p[i]!);
    if (cautious) {
      const moves = way.map((x, i) => (x * g[i]! < 0 ? 1 : 0));
      const share = Math.max(moves.reduce<number>((a, b) => a + b, 0) / p.length, 1e-3);
      way = way.map((x, i) => (x * moves[i]!) / share);
    }
    const keep = 1 - (goes === "independent" ? weightDecay : lr * weightDecay);
    const start = p.map((x, i) => {
      if (goes === null || goes === "l2") return x;
      return goes === "cautious" && way[i]! * x > 0 ? x : x * keep;
    });
    if (hyperball && isMatrix) {
      this.#radius ||= norm(p);
      const far = norm(way) > 0 ? (lr * this.#radius) / norm(way) : 1;
      const end = start.map((x, i) => x + far * way[i]!);
      this.values = end.map((x) => (x * this.#radius) / norm(end));
    } else this.values = start.map((x, i) => x + way[i]!);
  }
}

/** Draws of modifications that go with an optimizer. */
function drawn(
  random: Random,
  name: string,
  options: Readonly<Record<string, unknown>>,
  isAverage: boolean,
  findsRate: boolean,
  hasDecay: boolean,
) {
  const coin = () => random.word() / 2 ** 32 < 0.4;
  const { betas, momentum } = options as { betas?: readonly number[]; momentum?: number };
  const canMars = betas !== undefined || (momentum !== undefined && momentum < 1);
  const decays = findsRate ? (["l2"] as const) : (["l2", "decoupled", "cautious", "independent"] as const);
  return {
    ...(name !== "SOAP" && coin() && { centralize: true }), // singular for SOAP: roundings decide the basis
    ...(canMars && coin() && { mars: { gamma: 0.0625 } }),
    ...(!isAverage && coin() && { cautious: true }),
    ...(!isAverage && !findsRate && coin() && { hyperball: true }),
    ...(!isAverage && hasDecay && coin() && { decay: decays[Math.floor((random.word() / 2 ** 32) * decays.length)]! }),
  } satisfies Modifications;
}

const DECOUPLED = [
  "AdamW",
  "Sophia",
  "GaLore",
  "APOLLO",
  "Lion",
  "Muon",
  "SOAP",
  "Shampoo",
  "Kron",
  "Adan",
  "ADOPT",
  "AdEMAMix",
  "Adafactor",
];

describe.each(OPTIMIZERS)("$name", ({ name, make, runs, isAverage, hasVectors, findsRate }) => {
  const random = new Random(name.length);
  const rows = Array.from({ length: 8 }, (_, i) => {
    const run = runs[i % runs.length]! as Readonly<Record<string, unknown>>;
    const all = make([parameter([[1]])], run).groups[0]!;
    const hasDecay = "weightDecay" in all;
    return {
      ...run,
      ...(hasDecay && { weightDecay: 0.125 }),
      ...drawn(random, name, all, isAverage, findsRate, hasDecay),
    };
  }).filter((row) =>
    Object.keys(row).some((key) => ["cautious", "decay", "mars", "hyperball", "centralize"].includes(key)),
  );

  it.each(rows)("steps as a plain program around it, %o", (options) => {
    const { maximize, ...others } = options as { maximize?: boolean };
    const sign = maximize ? -1 : 1;
    const shapes = hasVectors && !findsRate ? [matrixOf(name), VECTOR] : [MATRIX]; // the plain program has one parameter
    const isDecoupled =
      DECOUPLED.includes(name) || Boolean((others as { decoupledWeightDecay?: boolean }).decoupledWeightDecay);
    const first = shapes.map((shape, k) =>
      numbersAt(
        0.5,
        k,
        shape.reduce((a, b) => a * b, 1),
      ),
    );
    const plain = shapes.map((shape, k) => new Plain(make, shape, others, first[k]!, isDecoupled));
    const params = shapes.map((shape, k) => parameter(tensor(first[k]!, { dtype: "f64" }).reshape([...shape])));
    const optimizer = make(params, options);
    for (let t = 1; t <= 12; t++) {
      shapes.forEach((shape, k) => {
        const gradient = numbersAt(t, k, params[k]!.size);
        params[k]!.grad = tensor(gradient, { dtype: "f64" }).reshape([...shape]);
        plain[k]!.step(gradient.map((x) => sign * x));
      });
      optimizer.step();
    }
    const tolerance = name === "Muon" ? 1e-3 : 1e-10; // Muon rounds to bfloat16, and so what differs at all
    for (const [k, param] of params.entries())
      expect(param.dataSync()).toAgreeWith(plain[k]!.values, { absolute: tolerance, relative: tolerance });
  });
});

it.each(OPTIMIZERS.filter(({ findsRate }) => findsRate))("$name rejects what goes by lr", ({ make }) => {
  const w = parameter([[1, 2]]);
  expectCode("UNSUPPORTED", () => make([w], { hyperball: true }));
  expectCode("UNSUPPORTED", () => make([w], { weightDecay: 0.1, decay: "cautious" }));
  make([w], { weightDecay: 0.1, decay: "l2" });
});

await eachDevice((device: Device) => {
  it.for(OPTIMIZERS)(
    "$name with all that goes with it has the words of js, eager and compiled",
    ({ name, make, runs, isAverage, findsRate, hasVectors, usesProducts }, { skip }) => {
      if (usesProducts && device.name === "wasm")
        skip("products of matrices on wasm are not those of js, unless portable");
      const all = make([parameter([[1]])], runs[0]!).groups[0] as { betas?: unknown; momentum?: number };
      const options = {
        ...runs[0],
        centralize: true,
        ...(all.betas !== undefined && { mars: { gamma: 0.0625 } }),
        ...(!isAverage && { cautious: true, hyperball: !findsRate }),
        ...(!isAverage && "weightDecay" in all && { weightDecay: 0.125, decay: findsRate ? "l2" : "cautious" }),
      };
      const run = (on: string, isCompiled: boolean) => {
        const shapes = hasVectors ? [matrixOf(name), VECTOR] : [MATRIX];
        const at = (t: number, k: number) =>
          tensor(
            numbersAt(
              t,
              k,
              shapes[k]!.reduce((a: number, b) => a * b, 1),
            ),
            { device: on },
          ).reshape([...shapes[k]!]);
        const params = shapes.map((_, k) => parameter(at(0.5, k)));
        const optimizer = make(params, options);
        const step = isCompiled ? compile(() => optimizer.step()) : () => optimizer.step();
        for (let t = 1; t <= 6; t++) {
          for (const [k, param] of params.entries()) param.grad = at(t, k);
          step();
        }
        return params.map((param) => [...param.dataSync()]);
      };
      const expected = run("js", false);
      expect(run(device.name, true)).toEqual(expected);
      if (device.name !== "js") expect(run(device.name, false)).toEqual(expected);
    },
  );
}, EXACT_DEVICES);

it("limits, penalizes and negates gradients before mars and centralize see them", () => {
  const options = { mars: { gamma: 0.0625 }, centralize: true };
  const [one, other] = [0, 1].map(() => parameter(tensor([1, -2, 3, 4], { dtype: "f64" }).reshape([2, 2])));
  const limits = { clip: { norm: 0.5, value: 0.2 }, regularizer: l1(0.25), maximize: true };
  const limited = new AdamW([one!], { ...options, ...limits });
  const plain = new AdamW([other!], options);
  for (let t = 1; t <= 4; t++) {
    const given = numbersAt(t, 0, 4);
    one!.grad = tensor(given, { dtype: "f64" }).reshape([2, 2]);
    const scaled = given.map((x) => Math.max(Math.min((x * 0.5) / (norm(given) + 1e-6), 0.2), -0.2));
    const signs = [...(other!.dataSync() as Float64Array)].map(Math.sign);
    const seen = scaled.map((x, i) => (norm(given) > 0.5 ? -x : Number.NaN) + 0.25 * signs[i]!);
    other!.grad = tensor(seen, { dtype: "f64" }).reshape([2, 2]);
    limited.step();
    plain.step();
  }
  expect(one!.dataSync()).toAgreeWith(other!.dataSync(), { absolute: 1e-10, relative: 1e-10 });
});

it("a first lr of 0 moves nothing, wherever the decay goes, and later ones do", () => {
  for (const decay of ["l2", "decoupled", "cautious", "independent"] as const) {
    const param = parameter([1, -2, 3]);
    param.grad = tensor([1, 1, 1]);
    const optimizer = new NAdam([param], { lr: 0, weightDecay: 0.25, decay });
    optimizer.step();
    expect([...param.dataSync()], decay).toEqual([1, -2, 3]);
    optimizer.groups[0]!.lr = 0.125;
    optimizer.step();
    expect(param.dataSync()[0], decay).toBeLessThan(1);
  }
});

it("takes one launch wherever the decay goes", () => {
  for (const decay of ["l2", "decoupled", "cautious", "independent"] as const) {
    const params = [parameter([1, -2, 3]), parameter([[4]])];
    for (const param of params) param.grad = tensor(new Float32Array(param.size)).reshape([...param.shape]);
    const optimizer = new NAdam(params, { weightDecay: 0.25, decay });
    const step = compile(() => optimizer.step());
    for (let i = 0; i < 3; i++) step();
    expect(step.explain().launches, decay).toBe(1);
  }
});

it("takes memory for about a million elements at a time, with the words of each parameter alone", () => {
  const size = 400_000;
  const gradient = tensor(Float32Array.from({ length: size }, (_, i) => ((i * 7919) % 199) - 99));
  const made = (count: number) => {
    const params = Array.from({ length: count }, () => parameter(new Float32Array(size)));
    const optimizer = new AdamW(params, { cautious: true });
    for (const param of params) param.grad = gradient;
    const step = compile(() => optimizer.step());
    for (let i = 0; i < 3; i++) step();
    return { params, peak: step.explain().peakBytes };
  };
  const [one, many] = [made(1), made(5)];
  for (const param of many.params) expect(param.sub(one.params[0]!).abs().max().dataSync()[0]).toBe(0);
  expect(many.peak).toBeLessThan(2.5 * one.peak);
});

it("has AdamW's words for Adam with decoupled decay", () => {
  const [one, other] = [parameter([1, -2, 3]), parameter([1, -2, 3])];
  const optimizers = [
    new AdamW([one], { weightDecay: 0.25 }),
    new Adam([other], { weightDecay: 0.25, decay: "decoupled" }),
  ];
  for (let t = 1; t <= 5; t++) {
    for (const w of [one, other]) w.grad = tensor([t, -1, 0.5]);
    for (const optimizer of optimizers) optimizer.step();
  }
  expect(other.tolist()).toEqual(one.tolist());
});

it.each<[string, (group: GroupOptions) => void]>([
  ["another gamma of mars", (group) => Object.assign(group, { mars: { gamma: 0.5 } })],
  ["a gamma of mars in place", ({ mars }) => Object.assign(mars!, { gamma: 0.5 })],
  ["no mars", (group) => Object.assign(group, { mars: null })],
  ["no caution", (group) => Object.assign(group, { cautious: false })],
  ["no hyperball", (group) => Object.assign(group, { hyperball: false })],
  ["no centralized gradients", (group) => Object.assign(group, { centralize: false })],
  ["another decay", (group) => Object.assign(group, { decay: "decoupled" })],
])("%s is what the next step has, compiled or not", (_, change) => {
  const run = (isCompiled: boolean, isChanged: boolean) => {
    const w = parameter(tensor(numbersAt(0, 0, 6)).reshape([2, 3]));
    const gradient = zeros([2, 3]);
    const modifications = { mars: { gamma: 0.0625 }, cautious: true, hyperball: true, centralize: true } as const;
    const optimizer = new AdamW([w], { lr: 0.1, weightDecay: 0.5, decay: "cautious", ...modifications });
    const body = () => {
      w.grad = gradient.mul(1);
      optimizer.step();
    };
    const step = isCompiled ? compile(body) : body;
    for (let t = 1; t <= 8; t++) {
      gradient.set(tensor(numbersAt(t, 0, 6)).reshape([2, 3]));
      if (isChanged && t === 6) change(optimizer.groups[0]!);
      step();
    }
    return w.tolist();
  };
  expect(run(true, true)).toEqual(run(false, true));
  expect(run(true, true)).not.toEqual(run(true, false));
});

describe("a group that is added", () => {
  const options = {
    lr: 0.1,
    weightDecay: 0.125,
    decay: "cautious" as const,
    cautious: true,
    mars: { gamma: 0.0625 },
    hyperball: true,
    centralize: true,
  };
  const trained = (make: (w: Tensor) => Stepped) => {
    const w = parameter(tensor(numbersAt(0, 0, 6)).reshape([2, 3]));
    const optimizer = make(w);
    for (let t = 1; t <= 3; t++) {
      w.grad = tensor(numbersAt(t, 0, 6)).reshape([2, 3]);
      optimizer.step();
    }
    return w.tolist();
  };

  it("has the modifications of a constructor", () => {
    const added = trained((w) => {
      const optimizer = new AdamW([parameter([1])]);
      optimizer.addGroup({ params: [w], ...options });
      return optimizer as unknown as Stepped;
    });
    expect(added).toEqual(trained((w) => new AdamW([w], options) as unknown as Stepped));
    expect(added).not.toEqual(trained((w) => new AdamW([w], { lr: 0.1 }) as unknown as Stepped));
  });

  it("has them in optimizers of several stages", () => {
    const { mars: _, ...staged } = options;
    const added = trained((w) => {
      const optimizer = new Lamb([parameter([1])]);
      optimizer.addGroup({ params: [w], ...staged, mars: { gamma: 0.0625 } });
      return optimizer as unknown as Stepped;
    });
    expect(added).toEqual(trained((w) => new Lamb([w], options) as unknown as Stepped));
  });
});

describe("steps of single elements", () => {
  it("decay where the option says", () => {
    const w = parameter([1, -2, 3]);
    w.grad = tensor([0.5, 1, 0.25]);
    const first = w.clone();
    new AdamW([w], { weightDecay: 0.25, decay: "cautious" }).step();
    const step = functional(AdamW, { weightDecay: 0.25, decay: "cautious" });
    const gradient = tensor([0.5, 1, 0.25]);
    const [stepped] = step.update([gradient], step.init([first]), [first]).params as [Tensor];
    expect(stepped.tolist()).toEqual(w.tolist());
    const other = step.update([gradient], step.init([first]), [first], { decay: "decoupled" }).params as [Tensor];
    expect(other[0].tolist()).not.toEqual(w.tolist());
  });

  it("have no modifications of whole tensors", () => {
    for (const option of [{ cautious: true }, { hyperball: true }, { centralize: true }, { mars: { gamma: 0.1 } }])
      expectCode("UNSUPPORTED", () => functional(AdamW, option));
  });
});

it("hyperball steps a matrix of zeros as without it, and keeps the norm that this gives", () => {
  const [w, plain] = [
    parameter(new Float32Array(4), { shape: [2, 2] }),
    parameter(new Float32Array(4), { shape: [2, 2] }),
  ];
  const optimizers = [new SGD([w], { lr: 0.5, hyperball: true }), new SGD([plain], { lr: 0.5 })];
  for (const each of [w, plain]) each.grad = tensor([3, 0, 0, 4]).reshape([2, 2]);
  for (const optimizer of optimizers) optimizer.step();
  expect(w.tolist()).toEqual(plain.tolist());
  for (let t = 1; t <= 3; t++) {
    w.grad = tensor([t, -1, 2, 0.5]).reshape([2, 2]);
    optimizers[0]!.step();
    expect([norm([...w.dataSync()])]).toAgreeWith([2.5], { absolute: 1e-6, relative: 0 });
  }
});

describe("reject", () => {
  const w = parameter([[1, 2]]);
  it.each<[string, () => unknown]>([
    ["an unknown decay", () => new AdamW([w], { decay: "l1" as "l2" })],
    ["caution that is no boolean", () => new AdamW([w], { cautious: 1 as unknown as boolean })],
    ["mars without gamma", () => new AdamW([w], { mars: {} as { gamma: number } })],
    ["mars with a momentum of 1", () => new SGD([w], { momentum: 1, mars: { gamma: 0.025 } })],
  ])("%s", (_, make) => expectCode("BAD_ARGUMENT", make));

  it.each<[string, () => unknown]>([
    ["a decay where weightDecay is not", () => new Yogi([w], { decay: "l2" })],
    ["caution of averages", () => new ScheduleFreeAdamW([w], { cautious: true })],
    ["caution where state follows the parameter", () => new ASGD([w], { cautious: true })],
    ["some rows", () => new AdamW([w], { hyperball: true, lazyMode: true })],
  ])("%s, as UNSUPPORTED", (_, make) => expectCode("UNSUPPORTED", make));
});

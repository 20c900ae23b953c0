// The options of every group, whatever its optimizer: each does what one would do by hand to gradients, state or rows.
import {
  arange,
  type BaseOptions,
  enableStochasticRounding,
  Generator,
  type GroupOptions,
  l2,
  noGrad,
  parameter,
  randn,
  rowSparse,
  type Tensor,
  tensor,
} from "@opt/core";
import { expectCode } from "@opt/testkit";
import { workspaceOptimizers } from "@opt/testkit/optimizers";
import { describe, expect, it } from "vitest";
import * as optim from "./index";

type Options = Partial<BaseOptions> & GroupOptions;

interface Stepped {
  step(): unknown;
  stateDict(): { readonly state: Readonly<Record<string, Readonly<Record<string, number | Tensor>>>> };
}

/** SGD keeps state, and the first steps of those that find their lr are seen. */
const OWN: Readonly<Record<string, object>> = { SGD: { momentum: 0.9 }, DAdaptAdamW: { d0: 1 }, Prodigy: { d0: 1 } };

/** Every optimizer, as programs use it. */
const MAKE: Readonly<Record<string, (w: Tensor, options: Options) => Stepped>> = Object.fromEntries(
  (await workspaceOptimizers()).map(({ name, Optimizer }) => {
    const own = OWN[name] ?? {};
    return [name, (w: Tensor, options: Options) => new Optimizer([w], { ...own, ...options }) as unknown as Stepped];
  }),
);

/** Their first step only begins their state. */
const LATE = ["ADOPT", "SOAP"];
/** Only the direction of a gradient counts. */
const SCALELESS = ["Rprop", "LARS"];
/** Their state has shapes of its own, and their step needs whole parameters. */
const OWN_SHAPES = ["Adafactor", "APOLLO", "DAdaptAdamW", "GaLore", "Kron", "Prodigy", "Shampoo", "SOAP"];
const WHOLE = [
  "Adafactor",
  "APOLLO",
  "DAdaptAdamW",
  "GaLore",
  "Kron",
  "Lamb",
  "LARS",
  "Muon",
  "Prodigy",
  "Shampoo",
  "SOAP",
];

enableStochasticRounding();
const shapeOf = (name: string) => (name === "SOAP" ? [6, 6] : [6, 8]); // its bases are decided by roundings where ranks are low
const NEAR = { absolute: 1e-12, relative: 1e-12 };
/** Steps of different sizes, so that a limit changes more than all of them alike. */
const SCALES = [1, 3, 0.1];
const normOf = (x: Tensor) => Math.hypot(...x.dataSync());

type Change = (gradient: Tensor, w: Tensor) => Tensor;

describe.each(Object.entries(MAKE))("%s", (name, make) => {
  const SHAPE = shapeOf(name);
  /** SparseAdam takes no dense ones. */
  const whole = (gradient: Tensor) =>
    name === "SparseAdam" ? rowSparse(arange(SHAPE[0]!), gradient, SHAPE) : gradient;

  /** A few steps by the same gradients each time, which `change` changes by hand. */
  const train = (
    options: Options,
    change: Change = (gradient) => gradient,
    dtype: "f32" | "f64" | "bf16" = "f64",
    steps = 3,
  ) => {
    const generator = new Generator(5);
    const w = parameter(randn(SHAPE, { generator }).to(dtype));
    const optimizer = make(w, { lr: 0.1, ...options });
    for (const scale of SCALES.slice(0, steps)) {
      w.grad = noGrad(() => whole(change(randn(SHAPE, { generator }).mul(scale).to(w.dtype), w)));
      optimizer.step();
    }
    return { w, optimizer };
  };
  const trained = (...given: Parameters<typeof train>) => train(...given).w.dataSync();

  it.each<[string, Options, Change]>([
    ["maximize negates the gradient", { maximize: true }, (g) => g.neg()],
    ["regularizer adds its penalty's gradient", { regularizer: l2(0.5) }, (g, w) => g.add(w.mul(0.5))],
    ["clip.value limits each number of the gradient", { clip: { value: 0.05 } }, (g) => g.clamp(-0.05, 0.05)],
    [
      "clip.norm limits the gradient's norm",
      { clip: { norm: 0.4 } },
      (g) => g.mul(Math.min(1, 0.4 / (normOf(g) + 1e-6))),
    ],
  ])("%s", (title, options, change) => {
    const actual = trained(options);
    expect(actual).toAgreeWith(trained({}, change), NEAR);
    // No limit but 0 changes a direction.
    if (SCALELESS.includes(name) && title.startsWith("clip"))
      expect(trained({ clip: { value: 0, norm: 0 } })).toAgreeWith(trained({}, (g) => g.mul(0)));
    else expect(actual).not.toAgreeWith(trained({}), { absolute: 1e-4, relative: 0 });
  });

  const stateOf = ({ optimizer }: Pick<ReturnType<typeof train>, "optimizer">) =>
    Object.entries(optimizer.stateDict().state["0"]!).filter(
      (each): each is [string, Tensor] => typeof each[1] !== "number",
    );

  it("stateDType rounds each average after the step", () => {
    const averaged = (options: Options) => train(options, undefined, "f32", 1);
    const options: Options = { stateDType: "bf16" };
    if (OWN_SHAPES.includes(name)) return expectCode("UNSUPPORTED", () => averaged(options));
    const [rounded, exact] = [averaged(options), averaged({})].map((each) => Object.fromEntries(stateOf(each)));
    const stored = Object.keys(rounded!).filter((key) => rounded![key]!.dtype === "bf16");
    // A copy of the parameter stays a weight.
    expect(Object.keys(rounded!).filter((key) => !stored.includes(key))).toEqual(
      name === "ScheduleFreeAdamW" ? ["z"] : [],
    );
    for (const key of stored) expect(rounded![key]!.dataSync()).toAgreeWith(exact![key]!.to("bf16").dataSync());
  });

  it("stochasticRounding steps to either of the nearest values, without master weights", () => {
    const options: Options = { stochasticRounding: { seed: 1 } };
    const steps = LATE.includes(name) ? 2 : 1;
    const rounded = train(options, undefined, "bf16", steps);
    const plain = train({}, undefined, "bf16", steps);
    const keys = (run: typeof plain) => stateOf(run).map(([key]) => key);
    expect(keys(plain)).toContain("master_param");
    expect(keys(rounded)).toEqual(keys(plain).filter((key) => key !== "master_param"));
    const [drawn, nearest] = [rounded, plain].map(({ w }) => w.dataSync());
    const exact = (plain.optimizer.stateDict().state["0"]!.master_param as Tensor).dataSync();
    // bf16 has gaps of 2^-7 of a value or less.
    for (const [i, value] of drawn!.entries()) {
      expect(Math.abs(value - exact[i]!)).toBeLessThan(2 ** -7 * Math.abs(exact[i]!));
    }
    expect([...drawn!]).not.toEqual([...nearest!]);
  });

  it("lazyMode leaves alone the rows that the gradient lacks, and their state", () => {
    const options: Options = { lr: 0.1, lazyMode: true };
    const rows = (...steps: number[]) => {
      const w = parameter([
        [1, 2],
        [3, 4],
      ]);
      const optimizer = make(w, options);
      for (const row of steps) {
        w.grad = rowSparse(tensor([row], { dtype: "i32" }), tensor([[1, -2]]), [2, 2]);
        optimizer.step();
      }
      return [w, ...stateOf({ optimizer }).map(([, x]) => x)].map((x) => x.tolist() as number[][]);
    };
    if (WHOLE.includes(name)) return expectCode("UNSUPPORTED", () => rows(1));
    const [before, after] = LATE.includes(name) ? [rows(1, 1), rows(1, 1, 0, 0)] : [rows(1), rows(1, 0)];
    expect(before[0]![0]).toEqual([1, 2]);
    expect(before[0]![1]).not.toEqual([3, 4]);
    expect(after.map(([, row]) => row)).toEqual(before.map(([, row]) => row));
    expect(after[0]![0]).not.toEqual([1, 2]);
  });
});

describe("addGroup gives its group the options that a constructor takes", () => {
  const GROUPS: Options[] = [
    { lr: 0.3 },
    { maximize: true },
    { regularizer: l2(0.5) },
    { clip: { value: 0.05 } },
    { stateDType: "bf16" },
  ];
  const step = (optimizer: Stepped, w: Tensor) => {
    for (const scale of SCALES) {
      w.grad = tensor([scale, -2 * scale, 0.3 * scale, 4], { shape: [2, 2] });
      optimizer.step();
    }
    return [...w.dataSync()];
  };
  const start = () => parameter([1, 2, 3, 4], { shape: [2, 2] });

  it.each(GROUPS)("%o", (options) => {
    const [inAdam, inMuon] = [start(), start()];
    const adam = new optim.Adam([parameter([1])]);
    adam.addGroup({ params: [inAdam], ...options });
    const muon = new optim.Muon([parameter([[1]])]);
    muon.addGroup({ params: [inMuon], ...options });
    for (const [optimizer, w, name] of [
      [adam, inAdam, "Adam"],
      [muon, inMuon, "Muon"],
    ] as const) {
      const actual = step(optimizer, w);
      const alone = start();
      expect(actual).toEqual(step(MAKE[name]!(alone, options), alone));
      const plain = start();
      expect(actual).not.toEqual(step(MAKE[name]!(plain, {}), plain));
    }
  });

  it("stochasticRounding, without master weights", () => {
    const options: Options = { stochasticRounding: true };
    for (const optimizer of [new optim.Adam([parameter([1])]), new optim.Muon([parameter([[1]])])]) {
      const w = parameter([[1, 2]], { dtype: "bf16" });
      if (optimizer instanceof optim.Adam) optimizer.addGroup({ params: [w], ...options });
      else optimizer.addGroup({ params: [w], ...options });
      w.grad = tensor([[1, -2]], { dtype: "bf16" });
      optimizer.step();
      expect(Object.keys(optimizer.stateDict().state["1"]!)).not.toContain("master_param");
    }
  });

  it("lazyMode, where the step has one stage", () => {
    const options: Options = { lazyMode: true };
    const adam = new optim.Adam([parameter([1])]);
    const w = parameter([
      [1, 2],
      [3, 4],
    ]);
    adam.addGroup({ params: [w], ...options });
    for (const row of [0, 1]) {
      const before = w.tolist() as number[][];
      w.grad = rowSparse(tensor([row], { dtype: "i32" }), tensor([[1, -2]]), [2, 2]);
      adam.step();
      expect((w.tolist() as number[][])[1 - row]).toEqual(before[1 - row]);
    }
    const muon = new optim.Muon([parameter([[1]])]);
    expectCode("UNSUPPORTED", () => muon.addGroup({ params: [w], ...options }));
  });
});

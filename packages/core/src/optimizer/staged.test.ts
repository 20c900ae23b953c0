import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { compile } from "../compile/compile";
import { parameter, tensor, zeros } from "../create";
import { init } from "../device/registry";
import type { ErrorCode } from "../errors/errors";
import { GradScaler } from "../loss-scaling/scaler";
import { viewAsComplex } from "../ops/complex";
import { rowSparse } from "../row-sparse/row-sparse";
import { defineRule, type Rule, type RuleDefinition } from "../rule/rule";
import { add, fma, mul } from "../rule/symbols";
import type { Tensor } from "../tensor/tensor";
import type { Algorithm, BaseOptions } from "./algorithm";
import { clipGradNorm } from "./gradients/clip";
import { l2 } from "./gradients/regularizer";
import { StagedOptimizer, type Stages } from "./staged";

const device = await init("js");

const buffers = ["param", "grad", "sum", "direction"] as const;
const first = defineRule({
  name: "firstStage",
  buffers,
  scalars: ["keep"],
  update: ({ grad, sum }, { keep }) => ({ direction: fma(keep, sum, grad) }),
});
const last = defineRule({
  name: "lastStage",
  buffers,
  scalars: ["keep", "negLr"],
  update: ({ param, grad, sum, direction }, { keep, negLr }) => ({
    param: add(param, mul(negLr, direction)),
    sum: fma(keep, sum, grad),
  }),
});

interface Options extends BaseOptions {
  keep: number;
  power: number;
}

const algorithm: Algorithm<Options> = {
  name: "Normalized",
  defaults: { lr: 0.5, keep: 0.5, power: 1, maximize: false },
  validate() {},
  checkParameter: (name, { shape }) => {
    if (shape.length > 1) throw new RangeError(name);
  },
  rule: () => last,
  initialCounters: { step: 0 },
  advance: ({ step }) => ({ step: step + 1 }),
  scalars: ({ lr, keep }) => ({ keep, negLr: -lr }),
};

const normalized: Stages<Options>["transform"] = (directions, { options: { power } }) => ({
  directions: directions.map((direction) => direction.div(direction.abs().sum().pow(power))),
});
let transform = normalized;

/** Steps along momentum / |momentum|_1. */
class Normalized extends StagedOptimizer<Options> {
  protected override define(): Algorithm<Options> {
    return algorithm;
  }
  protected override stages(): Stages<Options> {
    return { rule: () => first, transform: (...given) => transform(...given), transformedBy: ["power"] };
  }
}

const GRADIENTS = [
  [3, -1],
  [-4, 0.5],
  [1, 1],
  [0, 2],
] as const;

function start(options: object = {}, dtype: "f32" | "f64" | "bf16" = "f32") {
  const w = parameter([1, 2], { dtype });
  const optimizer = new Normalized([w], options);
  w.grad = tensor([0, 0], { dtype });
  return { w, optimizer, grad: w.grad };
}

it.each(["f32", "f64", "bf16"] as const)("steps along what its stages make, in %s; only the sum is state", (dtype) => {
  const { w, optimizer, grad } = start({ regularizer: l2(0.25), clip: { value: 2 }, maximize: true }, dtype);
  const [param, sum] = [
    [1, 2],
    [0, 0],
  ] as [number[], number[]];
  for (const gradient of GRADIENTS) {
    grad.set([...gradient]);
    optimizer.step();
    const own = gradient.map((g, i) => -Math.max(-2, Math.min(2, g)) + 0.25 * param[i]!);
    own.forEach((g, i) => {
      sum[i] = 0.5 * sum[i]! + g;
    });
    const length = Math.abs(sum[0]!) + Math.abs(sum[1]!);
    sum.forEach((s, i) => {
      param[i]! -= (0.5 * s) / length;
    });
  }
  expect(w.dataSync()).toAgreeWith(
    param,
    dtype === "bf16" ? { absolute: 0, relative: 2 ** -8 } : { absolute: 1e-6, relative: 0 },
  );
  const { "0": state } = optimizer.stateDict().state;
  expect(Object.keys(state!)).toEqual(dtype === "bf16" ? ["step", "sum", "master_param"] : ["step", "sum"]);
  expect((state!.sum as Tensor).dataSync()).toAgreeWith(sum, { absolute: 1e-6, relative: 0 });
});

it("clips by the norm as clipGradNorm before a step, and leaves no tensors behind", () => {
  const [fused, apart] = [start({ clip: { norm: 1 } }), start()];
  let before = device.memory();
  for (const gradient of GRADIENTS) {
    before = device.memory();
    for (const { grad } of [fused, apart]) grad.set([...gradient]);
    clipGradNorm([apart.w], 1);
    for (const { optimizer } of [fused, apart]) optimizer.step();
  }
  expect(fused.w.dataSync()).toAgreeWith(apart.w.dataSync());
  expect(device.memory()).toEqual(before);
});

it("compiled, it takes new options and steps as an eager one; steps that overflow are skipped", () => {
  const runs = [start(), start()].map((run) => ({ ...run, scaler: new GradScaler({ initScale: 4 }) }));
  const body = ({ w, optimizer, scaler }: (typeof runs)[number]) => {
    scaler.scale(w.sum());
    scaler.step(optimizer);
    scaler.update();
  };
  const [eager, compiled] = runs as [(typeof runs)[number], (typeof runs)[number]];
  const step = compile(() => body(compiled));
  const overflow = [Number.POSITIVE_INFINITY, 1];
  for (const [i, gradient] of [...GRADIENTS, overflow, [2, 5], [1, 3], overflow, [2, 1], [1, 1]].entries()) {
    for (const { grad, optimizer } of runs) {
      grad.set([...gradient]);
      Object.assign(optimizer.groups[0]!, { lr: 0.5 / (i + 1), keep: 0.1 * (i % 4) });
      if (i === 7) optimizer.groups[0]!.power = 2; // `transform` reads it
    }
    body(eager);
    step();
  }
  expect(eager.w.dataSync().every(Number.isFinite)).toBe(true);
  expect(compiled.w.dataSync()).toAgreeWith(eager.w.dataSync());
  expect(compiled.optimizer.stateDict().state["0"]!.step).toBe(eager.optimizer.stateDict().state["0"]!.step);
});

it("takes a direction as it is, and the memory of one more number for each while it steps", () => {
  const w = parameter(new Float32Array(1000));
  const optimizer = new Normalized([w]);
  w.grad = tensor(new Float32Array(1000).fill(1));
  optimizer.step();
  const { bytes } = device.memory();
  let peak = 0;
  transform = (directions) => {
    peak = device.memory().bytes - bytes;
    return { directions };
  };
  optimizer.step();
  transform = normalized;
  expect([peak, device.memory().bytes]).toEqual([4000, bytes]);
  expect(w.dataSync()[0]).toBeCloseTo(-0.5 / 1000 - 0.5 * 1.5, 6);
});

it("nothing has changed where a stage fails", () => {
  const { w, optimizer, grad } = start();
  grad.set([1, 1]);
  optimizer.step();
  const state = () => [w, optimizer.stateDict().state["0"]!.sum as Tensor].map((x) => [...x.dataSync()]);
  const before = state();
  transform = ([direction]) => ({ directions: [direction!.sum()] });
  expectCode("BAD_SHAPE", () => optimizer.step());
  transform = normalized;
  expect(state()).toEqual(before);
  expect(optimizer.stateDict().state["0"]!.step).toBe(1);
});

describe("rejects", () => {
  const rule = (name: string, own: readonly string[], update: RuleDefinition<string, string>["update"]) =>
    defineRule<string, string>({ name, buffers: own, scalars: [], update });
  const writesParam = rule("writesParam", buffers, ({ grad }) => ({ param: grad!, direction: grad! }));
  const fewer = rule("fewer", ["param", "grad", "direction"], ({ grad }) => ({ direction: grad! }));
  const noDirection = rule("noDirection", ["param", "grad", "sum"], ({ grad }) => ({ param: grad!, sum: grad! }));
  const writesDirection = rule("writesDirection", buffers, ({ grad }) => ({ param: grad!, direction: grad! }));
  const elsewhere = new FakeDevice();

  it.each<[ErrorCode, Partial<Stages<Options>> | null, Rule?]>([
    ["BAD_ARGUMENT", { rule: () => last }],
    ["BAD_ARGUMENT", { rule: () => writesParam }],
    ["BAD_ARGUMENT", { rule: () => fewer }],
    ["BAD_ARGUMENT", { rule: () => undefined as never }],
    ["BAD_ARGUMENT", { transform: () => undefined as never }],
    ["BAD_ARGUMENT", { transform: (async (directions: Tensor[]) => ({ directions })) as never }],
    ["BAD_ARGUMENT", { transform: () => ({ directions: [] }) }],
    ["BAD_ARGUMENT", { transform: () => ({ directions: [1 as never] }) }],
    ["BAD_ARGUMENT", { transform: null as never }],
    ["BAD_ARGUMENT", { transformedBy: undefined as never }],
    ["BAD_ARGUMENT", null],
    ["DEVICE_MISMATCH", { transform: ([x]) => ({ directions: [zeros(x!.shape, { device: elsewhere })] }) }],
    ["BAD_ARGUMENT", {}, noDirection],
    ["BAD_ARGUMENT", {}, writesDirection],
  ])("by %s stages that do not fit: %o", (code, given, main = last) => {
    class Wrong extends StagedOptimizer<Options> {
      protected override define(): Algorithm<Options> {
        return { ...algorithm, rule: () => main };
      }
      protected override stages(): Stages<Options> {
        const whole = {
          rule: () => first,
          transform: (directions: readonly Tensor[]) => ({ directions }),
          transformedBy: [],
        };
        return given === null ? (undefined as never) : { ...whole, ...given };
      }
    }
    const w = parameter([1, 2]);
    w.grad = tensor([1, 1]);
    expectCode(code, () => new Wrong([w]).step());
    expect(w.tolist()).toEqual([1, 2]);
  });
});

it("asks the algorithm about each parameter before it is taken", () => {
  expect(() => new Normalized([["deep", parameter([[1]])]])).toThrow("deep");
});

it("steps whole parameters: row-sparse gradients as dense ones, and never lazily", () => {
  expectCode("UNSUPPORTED", () => new Normalized([parameter([1])], { lazyMode: true }));
  expectCode("UNSUPPORTED", () => new Normalized([{ params: [parameter([1])], lazyMode: true }]));
  const runs = [false, true].map((isSparse) => {
    const w = parameter([1, 2]);
    const optimizer = new Normalized([w], { lr: 0.5 });
    w.grad = isSparse ? rowSparse(tensor([1], { dtype: "i32" }), tensor([3]), [2]) : tensor([0, 3]);
    optimizer.step();
    optimizer.groups[0]!.lazyMode = true;
    expectCode("UNSUPPORTED", () => optimizer.step());
    return w.tolist();
  });
  expect(runs[0]).toEqual(runs[1]);
});

it("rejects complex parameters, of which a direction would be half", () => {
  const z = parameter(viewAsComplex(zeros([2, 2])).clone());
  z.grad = viewAsComplex(zeros([2, 2])).clone();
  const optimizer = new Normalized([z]);
  expectCode("BAD_DTYPE", () => optimizer.step());
  expect(optimizer.stateDict().state).toEqual({});
});

/** Steps of its own length for each parameter, by an average of the gradients' means. */
const stepped = defineRule({
  name: "steppedByMeans",
  buffers: ["param", "grad", "direction"],
  scalars: ["length", "negLr"],
  update: ({ param, direction }, { length, negLr }) => ({ param: fma(mul(negLr, length), direction, param) }),
});
const copied = defineRule({
  name: "copiedGradient",
  buffers: ["param", "grad", "direction"],
  scalars: [],
  update: ({ grad }) => ({ direction: grad }),
});
const follow = defineRule({
  name: "followMean",
  buffers: ["next", "mean", "average"],
  scalars: ["keep", "factor"],
  update: ({ mean, average }, { keep, factor }) => ({ next: mul(fma(keep, average, mean), factor) }),
});

const byMeans: Stages<Options>["transform"] = (directions, { params, states, launch }) => {
  const pairs = directions.map((direction, i) => ({ state: states[i]!.get("mean")!, next: zeros([1]), direction }));
  const factor = 0.5;
  launch(
    follow,
    pairs.map(({ state, next, direction }) => [next, direction.mean(0, true), state]),
    { factor },
  );
  return {
    directions: pairs.map(({ next, direction }) => direction.add(next)),
    scalars: { length: params.map(({ size }) => size) },
    states: pairs.map(({ state, next }) => [state, next] as const),
  };
};

describe("state and scalars of stages", () => {
  let transform = byMeans;
  class Means extends StagedOptimizer<Options> {
    protected override define(): Algorithm<Options> {
      const scalars = ({ lr, keep }: Options) => ({ keep, negLr: -lr });
      const own = { stageState: () => ({ mean: [1] }), stageScalars: ["length"], rule: () => stepped, scalars };
      return { ...algorithm, name: "Means", ...own };
    }
    protected override stages(): Stages<Options> {
      return { rule: () => copied, transform: (...given) => transform(...given), transformedBy: [] };
    }
  }
  const begin = () => {
    const params = [parameter([1, 2]), parameter([4, 5, 6])];
    for (const param of params) param.grad = tensor(new Float32Array(param.size));
    return { params, optimizer: new Means(params, { lr: 0.125 }), scaler: new GradScaler({ initScale: 4 }) };
  };
  const words = ({ params, optimizer }: Omit<ReturnType<typeof begin>, "scaler">) => {
    const state = Object.values(optimizer.stateDict().state).flatMap((entry) => Object.values(entry));
    return [...params, ...state].map((value) => (typeof value === "number" ? value : [...value.dataSync()]));
  };

  it("are computed before the step, and renewed with it", () => {
    const run = begin();
    for (const gradient of [1, 3]) {
      for (const { grad } of run.params) grad!.set(new Float32Array(grad!.size).fill(gradient));
      run.optimizer.step();
    }
    // means 0.5 and 1.625: directions 1.5 and 4.625
    const moved = (length: number) => 0.125 * length * (1.5 + 4.625);
    const params = [[1 - moved(2), 2 - moved(2)], [4, 5, 6].map((p) => p - moved(3))];
    expect(words(run)).toEqual([...params, 2, [1.625], 2, [1.625]]);
  });

  it("compiled they follow options and scalers as eager steps, and stay where a step is skipped", () => {
    const [eager, compiled] = [begin(), begin()];
    const body = ({ params, optimizer, scaler }: ReturnType<typeof begin>) => {
      scaler.scale(params[0]!.sum());
      scaler.step(optimizer);
      scaler.update();
    };
    const step = compile(() => body(compiled));
    for (const [i, gradient] of [1, 2, Number.NaN, 3, 4, 5].entries()) {
      for (const { params, optimizer } of [eager, compiled]) {
        for (const { grad } of params) grad!.set(new Float32Array(grad!.size).fill(gradient));
        Object.assign(optimizer.groups[0]!, { keep: 0.25 * i, lr: 0.125 * i });
      }
      const before = String(words(compiled));
      body(eager);
      step();
      expect(words(compiled)).toEqual(words(eager));
      if (i > 0) expect(String(words(compiled)) === before).toBe(Number.isNaN(gradient));
    }
  });

  it("are saved, loaded and checked by their own shapes", () => {
    const [straight, resumed] = [begin(), begin()];
    for (const { optimizer } of [straight, resumed]) optimizer.step();
    const saved = resumed.optimizer.stateDict();
    const optimizer = new Means(resumed.params);
    optimizer.loadStateDict(saved);
    for (const each of [straight.optimizer, optimizer]) each.step();
    expect(words({ ...resumed, optimizer })).toEqual(words(straight));
    const other = { ...saved, state: { ...saved.state, "0": { step: 1, mean: zeros([2]) } } };
    expectCode("BAD_STATE", () => optimizer.loadStateDict(other));
    expectCode("BAD_STATE", () => optimizer.loadStateDict({ ...saved, state: { "0": { step: 1 } } }));
  });

  it("have no other dtype", () => {
    for (const options of [{ stateDType: "bf16" }] as const) {
      expectCode("UNSUPPORTED", () => new Means([parameter([1])], options));
      const { optimizer } = begin();
      Object.assign(optimizer.groups[0]!, options);
      expectCode("UNSUPPORTED", () => optimizer.step());
    }
  });

  it.each<[ErrorCode, string, Stages<Options>["transform"]]>([
    ["BAD_ARGUMENT", "no scalars", (directions) => ({ directions })],
    ["BAD_ARGUMENT", "a scalar too few", (directions) => ({ directions, scalars: { length: [1] } })],
    [
      "BAD_SHAPE",
      "state of another shape",
      (directions, { states }) => ({
        directions,
        scalars: { length: [1, 1] },
        states: [[states[0]!.get("mean")!, zeros([2])]],
      }),
    ],
  ])("throws %s for %s, and nothing has changed", (code, _, wrong) => {
    const run = begin();
    const before = run.params.map((param) => param.tolist());
    transform = wrong;
    expectCode(code, () => run.optimizer.step());
    transform = byMeans;
    expect(run.params.map((param) => param.tolist())).toEqual(before);
    expect(run.optimizer.stateDict().state).toEqual({});
  });
});

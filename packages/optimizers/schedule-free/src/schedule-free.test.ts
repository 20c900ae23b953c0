import {
  compile,
  type DType,
  ExponentialMovingAverage,
  enableQ8,
  functional,
  GradScaler,
  parameter,
  type Tensor,
  tensor,
  viewAsComplex,
  viewAsReal,
} from "@opt/core";
import { expectCode, optaxGoldens, optimizerSuite, runOptimizer } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import * as exported from "./index";
import { ScheduleFreeAdamW, type ScheduleFreeAdamWOptions } from "./index";

optimizerSuite(exported, {
  ScheduleFreeAdamW: {
    defaults: {
      lr: 2.5e-3,
      betas: [0.9, 0.999],
      eps: 1e-8,
      weightDecay: 0,
      warmupSteps: 0,
      r: 0,
      weightLrPower: 2,
      maximize: false,
      training: true,
    },
    wrong: {
      lr: [-1],
      betas: [
        [0, 0.999],
        [0.9, 1],
      ],
      eps: [-1],
      weightDecay: [-1],
      warmupSteps: [-1],
      r: [Number.NaN],
      weightLrPower: [-1],
      training: [1],
      amsgrad: [true],
    },
  },
});

it.each(optaxGoldens("ScheduleFreeAdamW"))("near optax, $options", async ({ param, average, ...run }) => {
  const { trace, state } = await runOptimizer(ScheduleFreeAdamW, run);
  const close = { absolute: 1e-6, relative: 1e-5 };
  expect(trace.at(-1)).toAgreeWith(param, close);
  const w = parameter(trace.at(-1) as Float32Array, { name: "w" });
  const optimizer = new ScheduleFreeAdamW([w], run.options as Partial<ScheduleFreeAdamWOptions>);
  const { groups } = optimizer.stateDict();
  const entries = [...state].map(([key, x]) => [key, typeof x === "number" ? x : tensor(x as Float32Array)]);
  optimizer.loadStateDict({ groups, state: { w: Object.fromEntries(entries) } });
  optimizer.eval();
  expect(w.dataSync()).toAgreeWith(average!, close);
});

const START = [1, -2, 3];
const gradientAt = (t: number) => START.map((_, i) => Math.sin(t * (i + 1)));

/** An optimizer of one parameter, and what steps it by the gradients of some steps. */
function start(options: Partial<ScheduleFreeAdamWOptions> & { stateDType?: "bf16" } = {}, dtype: DType = "f32") {
  const w = parameter(START, { dtype, name: "w" });
  const optimizer = new ScheduleFreeAdamW([w], { lr: 0.05, ...options });
  const train = (from: number, to: number) => {
    for (let t = from; t <= to; t++) {
      w.grad = tensor(gradientAt(t), { dtype });
      optimizer.step();
    }
  };
  const words = () => [...w.dataSync()];
  return { w, optimizer, train, words };
}

describe("takes a plain loop's steps in float64, and its averages", () => {
  it.each([
    { warmupSteps: 0, r: 0, weightLrPower: 2 },
    { warmupSteps: 50, r: 0, weightLrPower: 2 },
    { warmupSteps: 300, r: 1.5, weightLrPower: 1 },
  ])("%o", ({ warmupSteps, r, weightLrPower }) => {
    const [lr, b1, b2, eps, weightDecay] = [0.01, 0.9, 0.99, 1e-6, 0.1] as const;
    const options = { lr, betas: [b1, b2], eps, weightDecay, warmupSteps, r, weightLrPower } as const;
    const { optimizer, train, words } = start(options, "f64");
    const each = START.map((p) => ({ x: p, y: p, z: p, squares: 0 }));
    let [sum, largest] = [0, 0];
    for (let t = 1; t <= 200; t++) {
      train(t, t);
      const rate = t < warmupSteps ? (lr * t) / warmupSteps : lr;
      largest = Math.max(largest, rate);
      const weight = t ** r * largest ** weightLrPower;
      sum += weight;
      each.forEach((state, i) => {
        const g = gradientAt(t)[i]!;
        state.squares = b2 * state.squares + (1 - b2) * g * g;
        const direction = g / (Math.sqrt(state.squares / (1 - b2 ** t)) + eps) + weightDecay * state.y;
        state.z -= rate * direction;
        state.x += (weight / sum) * (state.z - state.x);
        state.y = (1 - b1) * state.z + b1 * state.x;
      });
    }
    const close = { absolute: 1e-12, relative: 1e-12 };
    expect(words()).toAgreeWith(
      each.map(({ y }) => y),
      close,
    );
    optimizer.eval();
    expect(words()).toAgreeWith(
      each.map(({ x }) => x),
      close,
    );
    optimizer.train();
    expect(words()).toAgreeWith(
      each.map(({ y }) => y),
      close,
    );
  });
});

it("stands still at a learning rate of 0, which has no weight", () => {
  const { optimizer, train, words } = start({ lr: 0 });
  train(1, 3);
  expect([words(), optimizer.stateDict().state.w!.weight_sum]).toEqual([START, 0]);
  optimizer.groups[0]!.lr = 0.1;
  train(4, 4);
  expect(words().every(Number.isFinite)).toBe(true);
});

describe("train() and eval()", () => {
  it("change nothing when they are called twice, or before the first step", () => {
    const { optimizer, train, words } = start();
    optimizer.eval();
    expect(words()).toEqual(START);
    optimizer.train();
    train(1, 5);
    const trained = words();
    optimizer.train();
    expect(words()).toEqual(trained);
    optimizer.eval();
    const averages = words();
    optimizer.eval();
    expect(words()).toEqual(averages);
    expect(averages).not.toEqual(trained);
  });

  it("a step after eval() throws and changes nothing, compiled or scaled too", () => {
    const { w, optimizer, train, words } = start();
    w.grad = tensor([1, 1, 1]);
    const compiled = compile(() => optimizer.step());
    for (let i = 0; i < 3; i++) compiled();
    train(4, 5);
    w.grad = tensor([1, 1, 1]);
    optimizer.eval();
    const [averages, { step }] = [words(), optimizer.stateDict().state.w!];
    const scaler = new GradScaler();
    scaler.scale(w.sum()).backward();
    for (const body of [() => optimizer.step(), () => compiled(), () => scaler.step(optimizer)]) {
      expectCode("BAD_STATE", body);
      expect(words()).toEqual(averages);
      expect(optimizer.stateDict().state.w!.step).toBe(step);
    }
  });

  it("come between the calls of a compiled function", () => {
    const [eager, traced] = [start(), start()].map((each, i) => {
      const target = parameter([3, 1, -1]);
      const body = () => {
        each.w.sub(target).pow(2).sum().backward();
        each.optimizer.step();
        each.optimizer.zeroGrad();
      };
      return { ...each, step: i === 0 ? body : compile(body) };
    }) as [ReturnType<typeof start> & { step(): void }, ReturnType<typeof start> & { step(): void }];
    for (let i = 0; i < 12; i++) {
      for (const { optimizer, step } of [eager, traced]) {
        step();
        if (i % 3 !== 2) continue;
        optimizer.eval();
        if (i % 2 === 0) optimizer.train();
        else optimizer.eval();
        optimizer.train();
      }
      expect(traced.words()).toEqual(eager.words());
    }
  });

  it("cannot be called inside of a compiled function", () => {
    const { optimizer, train, words } = start();
    train(1, 3);
    const before = words();
    expectCode("UNSUPPORTED", () => compile(() => optimizer.eval())());
    expect(words()).toEqual(before);
  });

  it("begin in evaluation with training: false, and train after train()", () => {
    const w = parameter([1, 2]);
    const optimizer = new ScheduleFreeAdamW([w], { lr: 0.1, training: false });
    w.grad = tensor([1, -1]);
    expectCode("BAD_STATE", () => optimizer.step());
    expect([...w.dataSync()]).toEqual([1, 2]);
    optimizer.train();
    optimizer.step();
    expect([...w.dataSync()]).not.toEqual([1, 2]);
  });

  it("move groups by their own betas, and leave parameters without state alone", () => {
    const [a, b, frozen] = [parameter([1, 2]), parameter([1, 2]), parameter([5])];
    const optimizer = new ScheduleFreeAdamW([{ params: [a, frozen] }, { params: [b], betas: [0.5, 0.999] }], {
      lr: 0.1,
    });
    for (let i = 0; i < 3; i++) {
      for (const w of [a, b]) w.grad = tensor([1, -1]);
      optimizer.step();
    }
    optimizer.eval();
    // Both have the same z and x; y is nearer to z with the smaller beta.
    expect(a.dataSync()).toAgreeWith(b.dataSync(), { absolute: 1e-6, relative: 0 });
    expect([...frozen.dataSync()]).toEqual([5]);
  });

  it.each<DType>(["f32", "f64", "bf16", "f16"])(
    "in %s, saved in either mode and resumed as a run that goes on",
    (dtype) => {
      for (const evaluates of [false, true]) {
        const [straight, saved] = [start({}, dtype), start({}, dtype)];
        for (const { train, optimizer } of [straight, saved]) {
          train(1, 5);
          if (evaluates) optimizer.eval();
        }
        const state = saved.optimizer.stateDict();
        const resumed = start({ lr: 1 }, dtype);
        resumed.w.set(saved.w);
        resumed.optimizer.loadStateDict(state);
        expect(resumed.optimizer.groups[0]!.training).toBe(!evaluates);
        for (const { train, optimizer } of [straight, resumed]) {
          optimizer.train();
          train(6, 9);
        }
        expect(resumed.words()).toEqual(straight.words());
      }
    },
  );

  it.each<DType>(["bf16", "f16"])("in %s keep the float32 weights: few steps are too small", (dtype) => {
    const [narrow, wide] = [start({ lr: 1e-4 }, dtype), start({ lr: 1e-4 })];
    for (const { train, optimizer } of [narrow, wide]) {
      for (let i = 0; i < 20; i++) {
        train(i * 3 + 1, i * 3 + 3);
        optimizer.eval();
        optimizer.train();
      }
    }
    const { master_param, z } = narrow.optimizer.stateDict().state.w! as unknown as Record<string, Tensor>;
    expect(z!.dtype).toBe("f32");
    expect(master_param!.dataSync()).toAgreeWith(wide.words(), { absolute: 2e-3, relative: 0 });
    expect(narrow.words()).toEqual([...master_param!.to(dtype).dataSync()]);
  });

  it("take complex parameters as pairs", () => {
    const values = [1, -2, 3, 0.5];
    const [pairs, c] = [
      parameter(values, { shape: [2, 2] }),
      parameter(viewAsComplex(tensor(values, { shape: [2, 2] }))),
    ];
    const optimizer = new ScheduleFreeAdamW([pairs, c], { lr: 0.1 });
    for (let i = 0; i < 3; i++) {
      pairs.grad = tensor([
        [1, 2],
        [3, -i],
      ]);
      c.grad = viewAsComplex(
        tensor([
          [1, 2],
          [3, -i],
        ]),
      );
      optimizer.step();
    }
    optimizer.eval();
    expect([...viewAsReal(c).dataSync()]).toEqual([...pairs.dataSync()]);
  });
});

it("stores z in float32 where averages are stored in bf16 or in 8 bits", () => {
  enableQ8();
  const keys = ["z", "exp_avg_sq"] as const;
  const { optimizer, train } = start({ stateDType: "bf16" });
  train(1, 2);
  const { w: entry } = optimizer.stateDict().state;
  expect(keys.map((key) => (entry![key] as Tensor).dtype)).toEqual(["f32", "bf16"]);
  const w = parameter(new Float32Array(4096).fill(1 / 3), { name: "w" });
  const packed = new ScheduleFreeAdamW([w], { lr: 0, stateDType: "q8" });
  w.grad = tensor(new Float32Array(4096).fill(1));
  packed.step();
  packed.loadStateDict(packed.stateDict());
  expect((packed.stateDict().state.w!.z as Tensor).dataSync()[5]).toBe(Math.fround(1 / 3));
});

it("goes with moving averages, which are of the weights that are in place", () => {
  const { w, optimizer, train } = start();
  const ema = new ExponentialMovingAverage([w], { decay: 0.5 });
  train(1, 2);
  optimizer.eval();
  ema.update();
  const averages = [...w.dataSync()];
  optimizer.train();
  expect(ema.averaged(() => [...w.dataSync()])).toEqual(averages);
});

it("as a function starts z at the parameter, and lets gradients through", () => {
  const lr = parameter(0.1, { dtype: "f64" });
  const pure = functional(ScheduleFreeAdamW, { lr });
  let params = [parameter([1, -2], { dtype: "f64" })];
  let state = pure.init(params);
  expect((state[0]!.z as Tensor).tolist()).toEqual([1, -2]);
  const loss = (rate: number) => {
    const w = parameter([1, -2], { dtype: "f64" });
    const optimizer = new ScheduleFreeAdamW([w], { lr: rate });
    for (let i = 0; i < 3; i++) {
      w.grad = tensor([0.5, -0.25 * i], { dtype: "f64" });
      optimizer.step();
    }
    return w.pow(2).sum().dataSync()[0]!;
  };
  for (let i = 0; i < 3; i++) {
    ({ params, state } = pure.update([tensor([0.5, -0.25 * i], { dtype: "f64" })], state, params));
  }
  params[0]!.pow(2).sum().backward();
  const slope = (loss(0.1 + 1e-6) - loss(0.1 - 1e-6)) / 2e-6;
  expect(lr.grad!.dataSync()).toAgreeWith([slope], { absolute: 1e-6, relative: 1e-6 });
});

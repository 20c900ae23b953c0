// GradScaler's order of calls, states and errors; its numbers stand against PyTorch's in e2e/goldens.
import { expectCode } from "@opt/testkit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import { tidy } from "../device/scope";
import type { OptimizerState } from "../optimizer/state/state-dict";
import type { Tensor } from "../tensor/tensor";
import type { DType } from "../values/dtype";
import { GradScaler } from "./scaler";

function parts({ device = new FakeDevice(), dtype = "f32" as DType, momentum = 0 } = {}) {
  const w = parameter([1, 2], { device, dtype });
  const optimizer = new Momentum([w], { lr: 0.5, momentum });
  const scaler = new GradScaler({ initScale: 8, growthInterval: 2 });
  const backward = (by: number) => {
    optimizer.zeroGrad();
    scaler.scale(w.mul(tensor([by, 1], { device, dtype })).sum()).backward();
  };
  /** For compiled steps: the numbers of the host are in `by`. */
  const by = tensor([1, 1], { device, dtype });
  const step = () => {
    optimizer.zeroGrad();
    scaler.scale(w.mul(by).sum()).backward();
    scaler.step(optimizer);
  };
  const iteration = () => {
    step();
    scaler.update();
  };
  return { device, w, by, optimizer, scaler, backward, step, iteration };
}

it.each<DType>(["f32", "f64", "bf16"])(
  "steps on unscaled gradients of %s, in one launch beside the look at them",
  (dtype) => {
    const { device, w, optimizer, scaler, backward } = parts({ dtype });
    backward(2);
    expect([...w.grad!.dataSync()]).toEqual([16, 8]);
    device.launches.length = 0;
    scaler.step(optimizer);
    expect(device.launches.filter((kind) => kind === "rule" || kind === "sumSquares")).toEqual(["sumSquares", "rule"]);
    expect([...w.dataSync()]).toEqual([0, 1.5]);
    expect([...w.grad!.dataSync()]).toEqual([16, 8]);
  },
);

it("counts a skipped step nowhere, runs no hook, and backs off", async () => {
  const { w, optimizer, scaler, backward } = parts();
  let hooks = 0;
  optimizer.on("afterStep", () => hooks++);
  for (const by of [1, Infinity, NaN, 1]) {
    backward(by);
    await scaler.step(optimizer);
    await scaler.update();
  }
  expect([hooks, optimizer.stateDict().state["0"]!.step]).toEqual([2, 2]);
  expect([...w.dataSync()]).toEqual([0, 1]);
  expect(scaler.stateDict()).toEqual({
    scale: 2,
    growth_factor: 2,
    backoff_factor: 0.5,
    growth_interval: 2,
    _growth_tracker: 1,
  });
  expect(await scaler.getScale()).toBe(2);
});

it("saves a scale that has shrunk to 0, and loads it, as PyTorch does", async () => {
  const { scaler, optimizer, backward } = parts();
  scaler.loadStateDict({ ...scaler.stateDict(), scale: 2 ** -149 });
  backward(Infinity);
  await scaler.step(optimizer);
  await scaler.update();
  expect(scaler.stepWasSkipped).toBe(true);
  const other = new GradScaler();
  other.loadStateDict(scaler.stateDict());
  expect(await other.getScale()).toBe(0);
});

it("unscales in place, once, and the step then does not", () => {
  const { w, optimizer, scaler, backward } = parts();
  backward(2);
  scaler.unscale(optimizer);
  expect([...w.grad!.dataSync()]).toEqual([2, 1]);
  expectCode("BAD_STATE", () => scaler.unscale(optimizer));
  scaler.step(optimizer);
  expect([...w.dataSync()]).toEqual([0, 1.5]);
  expectCode("BAD_STATE", () => scaler.step(optimizer));
  expectCode("BAD_STATE", () => scaler.unscale(optimizer));
  scaler.update();
  expectCode("BAD_STATE", () => scaler.update());
});

it("waits for the host where that cannot wait, and rejects the next step until then", async () => {
  const { w, optimizer, scaler, backward } = parts({ device: new FakeDevice({ async: true }) });
  for (const by of [1, Infinity, 1]) {
    backward(by);
    const stepped = scaler.step(optimizer);
    expect(stepped).toBeInstanceOf(Promise);
    const updated = scaler.update();
    expect(updated).toBeInstanceOf(Promise);
    await updated;
    await stepped;
  }
  expect(optimizer.stateDict().state["0"]!.step).toBe(2);
  expect([...(await w.data())]).toEqual([0, 1]);
  expect(await scaler.getScale()).toBe(4);
  backward(1);
  const waiting = scaler.step(optimizer);
  expectCode("BAD_STATE", () => scaler.step(new Momentum([w])));
  await waiting;
  scaler.update();
  backward(1);
  const compiled = compile(() => {
    scaler.step(optimizer);
  });
  expectCode("UNSUPPORTED", compiled);
  await scaler.step(optimizer);
});

it.each<[string, (w: Tensor) => void]>([
  ["set", (w) => w.grad!.set([1, 1])],
  ["cleared", (w) => w.clearGradient()],
])(
  "where the host cannot wait, rejects gradients that were %s before the step was awaited, which can be tried again",
  async (_, change) => {
    const { w, optimizer, scaler, backward } = parts({ device: new FakeDevice({ async: true }) });
    backward(1);
    const stepped = scaler.step(optimizer)!;
    change(w);
    await expect(stepped).rejects.toMatchObject({ code: "BAD_STATE" });
    expect([...(await w.data())]).toEqual([1, 2]);
    backward(1);
    await scaler.step(optimizer);
    await scaler.update();
    expect([...(await w.data())]).toEqual([0.5, 1.5]);
  },
);

it("saves the same where the host cannot wait, also steps with unscale, two optimizers, and a scale that is set", async () => {
  const run = async (device: FakeDevice) => {
    const { w, optimizer, scaler, backward } = parts({ device });
    const other = parameter([1], { device });
    const second = new Momentum([other], { lr: 1, momentum: 0 });
    const states = [];
    for (const [i, by] of [1, 1, Infinity, 1, NaN, 1, 1].entries()) {
      backward(by);
      scaler.scale(other.sum()).backward();
      if (i === 1) scaler.unscale(optimizer);
      await scaler.step(optimizer);
      await scaler.step(second);
      if (i === 5) await scaler.update(tensor([64], { device }));
      else await scaler.update();
      second.zeroGrad();
      states.push(scaler.stateDict());
    }
    backward(Infinity);
    scaler.unscale(optimizer);
    await scaler.update(); // without a step
    return [states, scaler.stateDict(), await scaler.getScale(), [...(await w.data())]];
  };
  const found = await run(new FakeDevice({ async: true }));
  expect(found).toEqual(await run(new FakeDevice()));
  expect((found[0] as { scale: number }[]).map(({ scale }) => scale)).toEqual([8, 16, 8, 8, 4, 64, 64]);
});

it("rejects losses and saves before an update that was not awaited", async () => {
  const { w, optimizer, scaler, backward } = parts({ device: new FakeDevice({ async: true }) });
  backward(Infinity);
  scaler.step(optimizer);
  const updated = scaler.update();
  expectCode("BAD_STATE", () => scaler.stateDict());
  expectCode("BAD_STATE", () => scaler.scale(w.sum()));
  const replayed = compile(() => scaler.scale(w.sum()), { check: "never" });
  expectCode("BAD_STATE", replayed);
  await updated;
  expect(scaler.stateDict().scale).toBe(4);
  expect(await replayed().item()).toBe(12);
});

it("where the host cannot wait, an update may come before the step is awaited", async () => {
  const { w, optimizer, scaler, backward } = parts({ device: new FakeDevice({ async: true }) });
  for (let i = 0; i < 3; i++) {
    backward(1);
    const stepped = scaler.step(optimizer);
    await Promise.all([scaler.update(), stepped]);
  }
  expect([...(await w.data())]).toEqual([-0.5, 0.5]);
  expect(await scaler.getScale()).toBe(16);
});

it("counts no skipped step where the gradient stays in place", async () => {
  const { w, optimizer, scaler, backward } = parts({ device: new FakeDevice({ async: true }) });
  backward(1);
  for (const by of [1, Infinity, 1]) {
    w.grad!.set([by, 1]);
    await scaler.step(optimizer);
    await scaler.update();
  }
  expect(optimizer.stateDict().state["0"]!.step).toBe(2);
});

it.each<[string, (optimizer: Momentum, saved: OptimizerState) => void, number[]]>([
  ["freed", (optimizer) => optimizer.dispose(), []],
  ["loaded", (optimizer, saved) => optimizer.loadStateDict(saved), [7]],
])("a skipped step leaves a state alone that was %s meanwhile", async (_, change, steps) => {
  const device = new FakeDevice({ async: true });
  const { optimizer, scaler, backward } = parts({ device });
  const saved = { groups: [{ params: ["0"] }], state: { 0: { step: 7, velocity: tensor([0, 0], { device }) } } };
  backward(Infinity);
  const stepped = scaler.step(optimizer);
  change(optimizer, saved);
  await stepped;
  expect(Object.values(optimizer.stateDict().state).map(({ step }) => step)).toEqual(steps);
});

it("passes everything through where it is not enabled", async () => {
  const w = parameter([1]);
  const optimizer = new Momentum([w], { lr: 1, momentum: 0 });
  const scaler = new GradScaler({ enabled: false });
  scaler.scale(w.mul(3).sum()).backward();
  scaler.unscale(optimizer);
  scaler.step(optimizer);
  scaler.update();
  scaler.loadStateDict({ scale: "none" } as never);
  expect([w.dataSync()[0], await scaler.getScale(), scaler.stateDict()]).toEqual([-2, 1, {}]);
  let closures = 0;
  scaler.step(optimizer, () => closures++);
  expect([w.dataSync()[0], closures]).toEqual([-5, 1]);
});

it("takes a factor that it is given, a number or a tensor", async () => {
  const { device, optimizer, scaler, backward } = parts();
  for (const given of [32, tensor(32, { device }), tensor([[32]], { device })]) {
    backward(1);
    scaler.step(optimizer);
    scaler.update(given);
    expect(await scaler.getScale()).toBe(32);
  }
  backward(1);
  scaler.step(optimizer);
  for (const wrong of [-1, 0, NaN, "32", [32]]) expectCode("BAD_ARGUMENT", () => scaler.update(wrong as number));
  scaler.update();
  expect(await scaler.getScale()).toBe(32);
});

it.each(["before its first loss", "in use"])("goes on from a state that is loaded %s", async (when) => {
  const [saved, loaded] = [parts(), parts()];
  for (const by of [1, 1, Infinity, 1]) {
    saved.backward(by);
    saved.scaler.step(saved.optimizer);
    saved.scaler.update();
  }
  const state = { ...saved.scaler.stateDict(), growth_factor: 4, backoff_factor: 0.25, growth_interval: 3 };
  if (when === "in use") loaded.backward(1);
  loaded.scaler.loadStateDict(state);
  expect([await loaded.scaler.getScale(), loaded.scaler.stateDict()]).toEqual([8, state]);
  for (const by of [1, 1, NaN]) {
    loaded.backward(by);
    loaded.scaler.step(loaded.optimizer);
    loaded.scaler.update();
  }
  expect(loaded.scaler.stateDict()).toEqual({ ...state, scale: 8, _growth_tracker: 0 });
});

it("updates from any state as PyTorch's _amp_update_scale_", () => {
  const state = fc.record({
    scale: fc.constantFrom(0.5, 8, 2 ** 127),
    growth_factor: fc.constantFrom(2, 4),
    backoff_factor: fc.constantFrom(0.25, 0.5),
    growth_interval: fc.integer({ min: 1, max: 4 }),
    _growth_tracker: fc.nat(4),
  });
  fc.assert(
    fc.property(state, fc.constantFrom(1e-30, Number.POSITIVE_INFINITY), (state, by) => {
      const { backward, scaler, optimizer } = parts();
      scaler.loadStateDict(state);
      backward(by);
      const isStepped = optimizer.groups[0]!.params[0]!.grad!.dataSync().every(Number.isFinite);
      scaler.step(optimizer);
      scaler.update();
      const { scale, growth_factor, backoff_factor, growth_interval, _growth_tracker } = state;
      const count = _growth_tracker + 1;
      const grown = Math.fround(scale * growth_factor);
      const next = !isStepped
        ? { scale: scale * backoff_factor, _growth_tracker: 0 }
        : count === growth_interval
          ? { scale: Number.isFinite(grown) ? grown : scale, _growth_tracker: 0 }
          : { _growth_tracker: count };
      expect(scaler.stateDict()).toEqual({ ...state, ...next });
    }),
    { numRuns: 60 },
  );
});

it("backs off where one optimizer of several met what is not finite, and steps the others", () => {
  for (const bad of [0, 1, 2]) {
    const scaler = new GradScaler({ initScale: 8 });
    const device = new FakeDevice();
    const all = [0, 1, 2].map(() => parameter([1], { device }));
    const optimizers = all.map((w) => new Momentum([w], { lr: 1, momentum: 0 }));
    const losses = all.map((w, i) => w.mul(i === bad ? Infinity : 1).sum());
    scaler.scale(losses.reduce((sum, loss) => sum.add(loss))).backward();
    for (const optimizer of optimizers) scaler.step(optimizer);
    scaler.update();
    expect(all.map((w) => w.dataSync()[0])).toEqual(all.map((_, i) => Number(i === bad)));
    expect(scaler.stateDict().scale).toBe(4);
  }
});

it.each<[string, DType, DType, number[]]>([
  ["unscales in place before", "f32", "f32", [2, 3]],
  ["leaves what it is given in f16, and beside it,", "f32", "f16", [16, 24]],
])("a limited norm %s, in one group of two", (_, first, second, gradients) => {
  const device = new FakeDevice();
  const params = [parameter([1], { device, dtype: first }), parameter([1], { device, dtype: second })];
  const optimizer = new Momentum([{ params: params[0]! }, { params: params[1]!, clip: { norm: 1 } }], { lr: 0 });
  const scaler = new GradScaler({ initScale: 8 });
  scaler.scale(params[0]!.mul(2).sum().add(params[1]!.to("f32").mul(3).sum())).backward();
  if (second === "f16") expectCode("UNSUPPORTED", () => scaler.unscale(optimizer));
  else scaler.unscale(optimizer);
  scaler.step(optimizer);
  expect(params.map(({ grad }) => grad!.dataSync()[0])).toEqual(gradients);
});

it("a factor that changed between scale and backward is noticed", () => {
  const { w, optimizer, scaler, backward } = parts();
  backward(1);
  const early = scaler.scale(w.sum());
  scaler.step(optimizer);
  scaler.update();
  expectCode("CHANGED", () => early.backward());
});

describe("compiled", () => {
  it("two steps in one function: the second one knows whether the first one counted", () => {
    const run = (isCompiled: boolean) => {
      const { w, by, optimizer, scaler, backward, iteration } = parts({ momentum: 0.5 });
      const twice = () => {
        iteration();
        iteration();
      };
      backward(1); // the scaler is in use before
      scaler.step(optimizer);
      scaler.update();
      const step = isCompiled ? compile(twice) : twice;
      for (const value of [1, 1, 1, 1, Infinity, 2, NaN, 1, 3, Infinity, 1]) {
        by.set([value, 1]);
        step();
      }
      return [[...w.dataSync()], optimizer.stateDict().state["0"]!.step, scaler.stateDict()];
    };
    expect(run(true)).toEqual(run(false));
  });

  it.each([true, false])("says of each run whether its step was skipped: compiled %s", (isCompiled) => {
    const { by, scaler, iteration } = parts();
    const step = isCompiled ? compile(iteration) : iteration;
    expect(scaler.stepWasSkipped).toBe(false);
    const skipped = [1, Infinity, 1, NaN, NaN, 1, 1, Infinity].map((value) => {
      by.set([value, 1]);
      step();
      return scaler.stepWasSkipped;
    });
    expect(skipped).toEqual([false, true, false, true, true, false, false, true]);
  });

  it("counts nothing where the first runs are skipped", () => {
    const { w, by, optimizer, iteration } = parts();
    const step = compile(iteration);
    by.set([Infinity, 1]);
    for (let i = 0; i < 5; i++) step();
    expect(optimizer.stateDict().state).toEqual({});
    by.set([1, 1]);
    step();
    expect(optimizer.stateDict().state["0"]!.step).toBe(1);
    expect([...w.dataSync()]).toEqual([0.5, 1.5]);
  });

  it("rejects a step without its update, and to go on with what was unscaled before", () => {
    expectCode("UNSUPPORTED", compile(parts().step));
    const fresh = parts();
    fresh.backward(1);
    fresh.scaler.unscale(fresh.optimizer);
    expectCode(
      "UNSUPPORTED",
      compile(() => {
        fresh.scaler.step(fresh.optimizer);
      }),
    );
    fresh.scaler.step(fresh.optimizer);
    fresh.scaler.update();
    expect([...fresh.w.dataSync()]).toEqual([0.5, 1.5]);
  });

  it.each(["unscale", "step"] as const)(
    "can be used again after a function that threw between %s and update",
    (when) => {
      const { device, w, by, optimizer, scaler, backward, iteration } = parts();
      iteration();
      let throws = true;
      const step = compile(() => {
        optimizer.zeroGrad();
        scaler.scale(w.mul(by).sum()).backward();
        scaler[when](optimizer);
        if (throws) throw new Error("stop");
        if (when === "unscale") scaler.step(optimizer);
        scaler.update();
      });
      expect(step).toThrow("stop");
      const { tensors } = device.memory();
      expect(step).toThrow("stop");
      expect(device.memory().tensors).toBe(tensors);
      backward(1);
      scaler.step(optimizer);
      scaler.update();
      expect(step).toThrow("stop");
      throws = false;
      for (let i = 0; i < 3; i++) step();
      const steps = when === "step" ? 8 : 5;
      expect([...w.dataSync()]).toEqual([1 - steps / 2, 2 - steps / 2]);
    },
  );

  it("is rejected in the midst of another iteration", () => {
    const { optimizer, scaler, iteration } = parts();
    const step = compile(iteration);
    for (let i = 0; i < 3; i++) step();
    scaler.unscale(optimizer);
    expectCode("UNSUPPORTED", step);
  });

  it("goes on from a scale and growth that are loaded", () => {
    const run = (isCompiled: boolean) => {
      const { scaler, iteration } = parts();
      const step = isCompiled ? compile(iteration) : iteration;
      for (let i = 0; i < 5; i++) step();
      scaler.loadStateDict({ ...scaler.stateDict(), scale: 4, _growth_tracker: 1 });
      const states = [step(), scaler.stateDict()];
      for (const other of [{ growth_factor: 4 }, { backoff_factor: 0.25 }, { growth_interval: 1 }]) {
        scaler.loadStateDict({ ...scaler.stateDict(), ...other });
        for (let i = 0; i < 3; i++) step();
        states.push(scaler.stateDict());
      }
      return states;
    };
    expect(run(true)).toEqual(run(false));
  });

  it("runs hooks of steps that are not skipped", () => {
    const { by, optimizer, iteration } = parts();
    const calls: string[] = [];
    for (const event of ["beforeStep", "afterStep"] as const) optimizer.on(event, () => calls.push(event));
    const step = compile(iteration);
    const counts = [1, 1, 1, 1, Infinity, 1, NaN, 2].map((value) => {
      by.set([value, 1]);
      calls.length = 0;
      step();
      return calls.join();
    });
    const both = "beforeStep,afterStep";
    expect(counts).toEqual([both, both, both, both, "", both, "", both]);
  });
});

it.each(["by itself", "before"])(
  "a step that was rejected can be tried again, unscaled %s, and leaves nothing",
  (when) => {
    const { device, w, optimizer, scaler, backward } = parts();
    backward(2);
    if (when === "before") scaler.unscale(optimizer);
    const before = device.memory();
    optimizer.groups[0]!.lr = Number.NaN;
    expectCode("BAD_ARGUMENT", () => scaler.step(optimizer));
    expect(device.memory()).toEqual(before);
    optimizer.groups[0]!.lr = 0.5;
    scaler.step(optimizer);
    expect([...w.dataSync()]).toEqual([0, 1.5]);
  },
);

it("f16: what only the scaled loss shows survives a clipped norm, and unscaling in place is rejected as in PyTorch", () => {
  const tiny = 2 ** -27; // half of it is less than float16 has
  const w = parameter([0, 0], { dtype: "f16", device: new FakeDevice() });
  const optimizer = new Momentum([w], { lr: 2 ** 20, momentum: 0, clip: { norm: 1 } });
  const scaler = new GradScaler();
  scaler.scale(w.to("f32").mul(tiny).sum()).backward();
  expectCode("UNSUPPORTED", () => scaler.unscale(optimizer));
  scaler.step(optimizer);
  expect([...w.dataSync()]).toEqual([-(2 ** -7), -(2 ** -7)]);
});

it.each(["after update", "before it"])("frees what it has, %s", (when) => {
  const { device, optimizer, scaler, w } = parts();
  const before = device.memory();
  tidy(() => scaler.scale(w.sum()).backward());
  scaler.step(optimizer);
  if (when === "after update") scaler.update();
  scaler.dispose();
  optimizer.zeroGrad();
  optimizer.dispose();
  expect(device.memory()).toEqual(before);
});

it("leaves nothing of compiled steps behind", () => {
  const { device, w, optimizer, scaler, iteration } = parts();
  const before = device.memory();
  const step = compile(() => {
    iteration();
    optimizer.zeroGrad();
  });
  for (let i = 0; i < 5; i++) step();
  expect([...w.dataSync()]).toEqual([-1.5, -0.5]);
  step.dispose();
  scaler.dispose();
  optimizer.dispose();
  expect(device.memory()).toEqual(before);
});

it.each([
  ["BAD_STATE", (s: GradScaler, o: Momentum) => s.step(o)],
  ["BAD_STATE", (s: GradScaler, o: Momentum) => s.unscale(o)],
  ["BAD_STATE", (s: GradScaler) => s.update()],
  ["BAD_STATE", (s: GradScaler) => s.loadStateDict({})],
  ["BAD_STATE", (s: GradScaler) => s.loadStateDict(null as never)],
  ["BAD_STATE", (s: GradScaler) => s.loadStateDict(undefined as never)],
  ["BAD_STATE", (s: GradScaler) => s.loadStateDict({ ...s.stateDict(), scale: -1 })],
  ["BAD_STATE", (s: GradScaler) => s.loadStateDict({ ...s.stateDict(), scale: Infinity })],
  ["BAD_STATE", (s: GradScaler) => s.loadStateDict({ ...s.stateDict(), backoff_factor: 0 })],
  ["BAD_STATE", (s: GradScaler) => s.loadStateDict({ ...s.stateDict(), _growth_tracker: 0.5 })],
  ["BAD_STATE", (s: GradScaler) => s.loadStateDict({ ...s.stateDict(), scale: "8" as never })],
  ["BAD_STATE", (s: GradScaler) => s.loadStateDict({ ...s.stateDict(), growth_factor: 1 })],
  ["BAD_STATE", (s: GradScaler) => s.loadStateDict({ ...s.stateDict(), backoff_factor: 1 })],
  ["BAD_STATE", (s: GradScaler) => s.loadStateDict({ ...s.stateDict(), growth_interval: 0 })],
  ["BAD_STATE", (s: GradScaler) => s.loadStateDict({ ...s.stateDict(), growth_interval: 1.5 })],
  ["BAD_ARGUMENT", (s: GradScaler) => s.scale(1 as never)],
  ["BAD_ARGUMENT", (s: GradScaler) => s.step({} as Momentum)],
  ["BAD_ARGUMENT", (s: GradScaler) => s.step(null as unknown as Momentum)],
  ["BAD_ARGUMENT", (s: GradScaler, o: Momentum) => s.unscale([o] as unknown as Momentum)],
  ["UNSUPPORTED", (s: GradScaler, o: Momentum) => s.step(o, () => 1)],
  ["BAD_ARGUMENT", () => new GradScaler({ growthFactor: 1 })],
  ["BAD_ARGUMENT", () => new GradScaler({ backoffFactor: 1 })],
  ["BAD_ARGUMENT", () => new GradScaler({ backoffFactor: 0 })],
  ["BAD_ARGUMENT", () => new GradScaler({ growthInterval: 0 })],
  ["BAD_ARGUMENT", () => new GradScaler({ initScale: 0 })],
  ["BAD_ARGUMENT", () => new GradScaler({ growthInterval: 0.5 })],
  ["BAD_ARGUMENT", () => new GradScaler({ initScale: Infinity })],
  ["BAD_ARGUMENT", () => new GradScaler({ growth: 2 } as object)],
] as const)("rejects with %s: %s", (code, call) => {
  const { optimizer, scaler } = parts();
  expectCode(code, () => void call(scaler, optimizer));
});

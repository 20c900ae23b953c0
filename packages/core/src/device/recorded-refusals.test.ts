// Programs around device.record that are refused: while they are recorded, or when they are replayed.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { clipGradNorm, type ErrorCode, GradScaler, parameter, type Tensor, tensor, zeros } from "../index";
import { StepLR } from "../schedules";
import { FakeDevice } from "../testing/fake-backend";
import { Momentum } from "../testing/momentum";
import { type Parts, parts, train } from "../testing/regression";

it.each<[string, (p: Parts) => void, (p: Parts) => void, RegExp]>([
  ["no optimizer clears", () => {}, (p) => p.loss().backward(), /is new at its end.* of all parameters, inside/],
  [
    "were there before",
    (p) => p.loss().backward(),
    (p) => train(p, p.loss),
    /is gone at its end. Call zeroGrad.*before/,
  ],
])("gradients that %s are refused in words that say so", (_, before, body, words) => {
  const all = parts(new FakeDevice());
  before(all);
  expect(() => all.device.record(() => body(all))).toThrow(words);
});

describe("refused while it is recorded:", () => {
  const bodies: Record<string, [string, (p: Parts) => void]> = {
    "data from the host": ["UNSUPPORTED", (p) => p.x.mul(tensor([1, 2, 3], { device: p.device }))],
    "set from the host": ["UNSUPPORTED", (p) => p.x.set(new Float32Array(12))],
    "a second device": ["UNSUPPORTED", () => zeros([2], { device: "js" }).add(1)],
    reading: ["UNSUPPORTED", (p) => p.x.dataSync()],
    "reading another device": ["UNSUPPORTED", () => zeros([2], { device: "js" }).dataSync()],
    "another recording": ["UNSUPPORTED", (p) => p.device.record(() => p.x.mul(2))],
    "an asynchronous body": ["BAD_ARGUMENT", async (p) => p.x.mul(2)],
    // biome-ignore lint/suspicious/noThenProperty: a promise of another library
    "a thenable": ["BAD_ARGUMENT", () => ({ then: () => {} })],
    "a schedule's step": ["UNSUPPORTED", (p) => new StepLR(p.optimizer, { stepSize: 1 }).step()],
    "a number drawn by hand": ["UNSUPPORTED", (p) => p.generator.nextFloat()],
    "a permutation": ["UNSUPPORTED", (p) => p.generator.permutation(4)],
    "a loaded state": ["UNSUPPORTED", (p) => p.optimizer.loadStateDict(p.optimizer.stateDict())],
    "a new group": ["UNSUPPORTED", (p) => p.optimizer.addGroup({ params: [] })],
    "gradients left to the next iteration": ["UNSUPPORTED", (p) => p.loss().backward()],
    "a backward of what was computed before": [
      "UNSUPPORTED",
      (p) => {
        early!.backward();
        p.optimizer.zeroGrad();
      },
    ],
    "hooks that look at gradients": [
      "UNSUPPORTED",
      (p) => {
        p.optimizer.on("beforeStep", () => clipGradNorm([p.w], 1));
        train(p, p.loss);
      },
    ],
  };
  let early: Tensor | undefined;

  it.each(Object.entries(bodies))("%s", (_, [code, body]) => {
    const p = parts(new FakeDevice());
    early = p.loss();
    p.optimizer.step();
    const before = p.device.memory();
    expectCode(code as "UNSUPPORTED", () => p.device.record(() => body(p)));
    p.optimizer.zeroGrad();
    p.optimizer.dispose();
    expect(p.device.memory().tensors).toBeLessThanOrEqual(before.tensors);
    // and nothing of it is left: the device records, reads and writes as before
    p.x.set(new Float32Array(12));
    p.device.record(() => p.x.mul(2)).dispose();
    expect(p.generator.nextFloat()).toBeGreaterThanOrEqual(0);
  });

  it("a replay inside a recording", () => {
    const p = parts(new FakeDevice());
    const recording = p.device.record(() => p.x.mul(2));
    expectCode("UNSUPPORTED", () => p.device.record(() => recording.replay()));
  });
});

describe("refused when it is replayed, and nothing has changed:", () => {
  const changes: Record<string, (p: Parts) => void> = {
    "state that was loaded": ({ optimizer }) => optimizer.loadStateDict(optimizer.stateDict()),
    "state that was freed": ({ optimizer }) => optimizer.dispose(),
    "a parameter that was disposed": ({ w }) => w.dispose(),
    "data that was disposed": ({ x }) => x.dispose(),
    "a gradient that came in between": ({ loss }) => loss().backward(),
    "a gradient that was assigned": ({ w, device }) => {
      w.grad = tensor([1, 2, 3], { device });
    },
    "a group that was added": ({ optimizer, device }) => optimizer.addGroup({ params: [parameter([1], { device })] }),
    "a parameter that is frozen now": ({ w }) => {
      w.requiresGrad = false;
    },
    "data that asks for a gradient now": ({ x }) => {
      x.requiresGrad = true;
    },
    "an option that asks for another rule": ({ optimizer }) => {
      optimizer.groups[0]!.averaged = true;
    },
    "an option that climbs": ({ optimizer }) => {
      optimizer.groups[0]!.maximize = true;
    },
    "a penalty set later": ({ optimizer }) => {
      optimizer.groups[0]!.regularizer = { kind: "l2", coefficient: 0.1 };
    },
    "parameters that no longer step together": (p) => {
      p.w.grad = tensor([1, 2, 3], { device: p.device });
      p.optimizer.step();
      p.optimizer.zeroGrad();
    },
  };

  it.each(Object.entries(changes))("%s", (_, change) => {
    const p = parts(new FakeDevice());
    const recording = p.device.record(() => train(p, p.loss));
    recording.replay();
    change(p);
    const watched = () => ({ ...p.watched(), gradients: null });
    const before = p.w.isDisposed ? null : watched();
    p.device.launches.length = 0;
    expectCode("BAD_STATE", () => recording.replay());
    expect(p.device.launches).toEqual([]);
    expect(p.w.isDisposed ? null : watched()).toEqual(before);
    recording.dispose();
  });

  it.each<[string, "BAD_STATE" | "BAD_ARGUMENT", number]>([
    ["set", "BAD_STATE", 1],
    ["out of range", "BAD_ARGUMENT", -1],
  ])(
    "an option %s in a group without gradients: a scaler unscales in place where one limits the norm",
    (_, code, norm) => {
      const p = parts(new FakeDevice());
      p.optimizer.addGroup({ params: [parameter([1], { device: p.device })] });
      const scaler = new GradScaler({ initScale: 8 });
      const recording = p.device.record(() => {
        p.optimizer.zeroGrad();
        scaler.scale(p.loss()).backward();
        scaler.step(p.optimizer);
        scaler.update();
      });
      recording.replay();
      p.optimizer.groups[1]!.clip = { norm };
      const before = p.watched();
      expectCode(code, () => recording.replay());
      expect(p.watched()).toEqual(before);
    },
  );

  it("a group that was added, where the body clears gradients and does not step", () => {
    const p = parts(new FakeDevice());
    const recording = p.device.record(() => {
      p.optimizer.zeroGrad();
      p.loss().backward();
    });
    p.optimizer.groups[0]!.clip = { norm: 1 }; // for steps outside
    p.optimizer.on("beforeStep", () => {});
    recording.replay();
    p.optimizer.addGroup({ params: [parameter([1], { device: p.device })] });
    expectCode("BAD_STATE", () => recording.replay());
  });

  it("a disposed parameter that had no gradient", () => {
    const p = parts(new FakeDevice());
    const idle = parameter([1], { device: p.device });
    p.optimizer.addGroup({ params: [idle] });
    const recording = p.device.record(() => train(p, p.loss));
    recording.replay();
    idle.dispose();
    expectCode("BAD_STATE", () => recording.replay());
  });

  it.each<[string, (x: Tensor) => Tensor]>([
    ["computed with", (x) => x.mul(2)],
    ["viewed", (x) => x.detach()],
    ["cut to nothing", (x) => x.slice(0, 0)],
  ])("a disposed tensor that was %s, though a view keeps its memory", (_, use) => {
    const { device, x } = parts(new FakeDevice());
    const view = x.detach();
    const recording = device.record(() => use(x));
    recording.replay();
    x.dispose();
    expectCode("DISPOSED", () => use(x));
    expectCode("BAD_STATE", () => recording.replay());
    view.dispose();
  });

  it("gradients that came since, where the body clears what was not there", () => {
    const p = parts(new FakeDevice());
    const recording = p.device.record(() => {
      p.w.grad = null;
    });
    p.loss().backward();
    expectCode("BAD_STATE", () => recording.replay());
    expect(p.w.grad).not.toBeNull();
  });

  it("gradients that were cleared, where the body adds to them", () => {
    const p = parts(new FakeDevice());
    p.loss().backward();
    const recording = p.device.record(() => p.loss().backward());
    recording.replay();
    p.optimizer.zeroGrad();
    expectCode("BAD_STATE", () => recording.replay());
  });

  it.each(["at once", "after a hook"])(
    "an option out of range, in the second optimizer %s: the first has not stepped",
    (when) => {
      const p = parts(new FakeDevice());
      const second = new Momentum([p.b], { lr: 0.1 });
      if (when === "after a hook") second.on("beforeStep", () => {});
      const recording = p.device.record(() => {
        p.loss().backward();
        p.optimizer.step();
        second.step();
        p.optimizer.zeroGrad();
      });
      const before = [...p.w.dataSync()];
      second.groups[0]!.lr = Number.NaN;
      expectCode("BAD_ARGUMENT", () => recording.replay());
      expect([...p.w.dataSync()]).toEqual(before);
      expect(p.optimizer.stateDict().state[0]!.step).toBe(1);
      second.groups[0]!.lr = 0.1;
      recording.replay();
      expect(p.optimizer.stateDict().state[0]!.step).toBe(2);
    },
  );

  it("an option that a hook of the replay itself sets: the step does not run, and counts nothing", () => {
    const p = parts(new FakeDevice());
    let maximize = false;
    p.optimizer.on("beforeStep", ({ groups }) => {
      groups[0]!.maximize = maximize;
    });
    const recording = p.device.record(() => train(p, p.loss));
    const before = [...p.w.dataSync()];
    maximize = true;
    expectCode("BAD_STATE", () => recording.replay());
    expect([[...p.w.dataSync()], p.optimizer.stateDict().state[0]!.step]).toEqual([before, 1]);
  });

  it.each<[string, ErrorCode, object]>([
    ["a bound", "BAD_STATE", { norm: 1 }],
    ["one out of range", "BAD_ARGUMENT", { norm: -1 }],
  ])("%s for a group without gradients, set by a hook of the replay itself", (_, code, clip) => {
    const p = parts(new FakeDevice());
    p.optimizer.addGroup({ params: [parameter([1], { device: p.device })] });
    let isReplayed = false;
    p.optimizer.on("beforeStep", ({ groups }) => {
      if (isReplayed) groups[1]!.clip = clip;
    });
    const recording = p.device.record(() => train(p, p.loss));
    const before = [...p.w.dataSync()];
    isReplayed = true;
    expectCode(code, () => recording.replay());
    expect([[...p.w.dataSync()], p.optimizer.stateDict().state[0]!.step]).toEqual([before, 1]);
  });

  it("a bound that was set since a scaler's step was recorded: gradients would be unscaled before", () => {
    const p = parts(new FakeDevice());
    const scaler = new GradScaler({ initScale: 4 });
    const recording = p.device.record(() => {
      p.optimizer.zeroGrad();
      scaler.scale(p.loss()).backward();
      scaler.step(p.optimizer);
      scaler.update();
    });
    const before = [...p.w.dataSync()];
    p.optimizer.groups[0]!.clip = { norm: 1 };
    expectCode("BAD_STATE", () => recording.replay());
    expect([...p.w.dataSync()]).toEqual(before);
  });
});

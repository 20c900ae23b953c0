// What the recorder notes while a body runs: in hooks nothing, of other devices nothing, and undone what a replay could not finish.
import { inspect } from "node:util";
import { expectCode } from "@opt/testkit";
import { describe, expect, it, vi } from "vitest";
import {
  type DType,
  Generator,
  guardReplays,
  keep,
  noGrad,
  ones,
  parameter,
  randn,
  Tensor,
  tidy,
  zeros,
} from "../index";
import { Slot } from "../optimizer/slot";
import { FakeDevice } from "../testing/fake-backend";
import { Momentum } from "../testing/momentum";
import { returnVersionNumber, takeVersionNumber } from "./versions";

/** w is pulled to 0, a step at a time. */
function parts(dtype: DType = "f32") {
  const device = new FakeDevice();
  const w = parameter([0.5, -1, 2], { device, dtype });
  const optimizer = new Momentum([w], { lr: 0.1 });
  const train = () => {
    const loss = w.pow(2).sum();
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  };
  return { device, w, optimizer, train, values: () => [...w.dataSync()] };
}

const stepsOf = (optimizer: Momentum) => Object.values(optimizer.stateDict().state).map(({ step }) => step);

describe("guardReplays", () => {
  it("runs before each replay, which it can refuse; outside of a recording it does nothing", () => {
    const { device, train, values } = parts();
    let isTraining = true;
    guardReplays(() => expect.unreachable());
    const recording = device.record(() => {
      guardReplays(() => {
        if (!isTraining) throw new Error("switched");
      });
      train();
    });
    recording.replay();
    const before = values();
    isTraining = false;
    expect(() => recording.replay()).toThrow("switched");
    expect(values()).toEqual(before);
  });

  it("in a hook is for the hook alone, which runs again anyway", () => {
    const { device, optimizer, train } = parts();
    optimizer.on("afterStep", () => guardReplays(() => expect.unreachable()));
    device.record(train).replay();
  });
});

describe("hooks of a recorded step", () => {
  it("draw anew in each replay, once", () => {
    const run = (recorded: boolean) => {
      const { device, optimizer, train, values } = parts();
      const generator = new Generator(3);
      const noise = zeros([3], { device });
      optimizer.on("afterStep", () => tidy(() => noGrad(() => noise.set(randn([3], { device, generator })))));
      const recording = recorded ? device.record(train) : undefined;
      for (let i = recorded ? 1 : 0; i < 3; i++) recording ? recording.replay() : train();
      return [values(), [...noise.dataSync()], generator.stateDict()];
    };
    expect(run(true)).toEqual(run(false));
  });

  it("may do all that is not recorded, to their end: set, save another optimizer, read", () => {
    const { device, optimizer, train } = parts();
    const v = parameter([1, 2], { device, dtype: "bf16" });
    const other = new Momentum([v]);
    v.sum().backward();
    other.step();
    const read: number[][] = [];
    optimizer.on("afterStep", () => {
      v.set([read.length, 3]);
      const { master_param } = other.stateDict().state[0]!; // follows v, which is done once
      read.push([...v.dataSync(), ...(master_param as Tensor).dataSync()]);
    });
    const recording = device.record(train);
    recording.replay();
    expect(read).toEqual([
      [0, 3, 0, 3],
      [1, 3, 1, 3],
    ]);
  });

  it("overwrite by themselves, which a replay does not count again", () => {
    const { device, optimizer, train } = parts();
    const average = zeros([], { device });
    optimizer.on("afterStep", () => noGrad(() => average.set(0)));
    const recording = device.record(train);
    const { version } = average.storage;
    recording.replay();
    expect(average.storage.version).toBe(version + 1);
  });

  it("may read what is gone in the next iteration", () => {
    const { device, optimizer, train } = parts();
    let batch = zeros([2], { device });
    const seen: number[] = [];
    optimizer.on("afterStep", () => seen.push(batch.sum().dataSync()[0]!));
    const recording = device.record(train);
    batch.dispose();
    batch = ones([2], { device });
    recording.replay();
    expect(seen).toEqual([0, 2]);
  });

  it("must not record", () => {
    const { device, optimizer, train } = parts();
    optimizer.on("afterStep", () => void device.record(() => zeros([1], { device })));
    expectCode("UNSUPPORTED", () => device.record(train));
  });

  it("leave the body as recorded as before: it must not read after them, nor after state was made", () => {
    for (const hook of [true, false]) {
      const { device, optimizer, train, values } = parts();
      if (hook) optimizer.on("afterStep", () => {});
      expectCode("UNSUPPORTED", () =>
        device.record(() => {
          train();
          values();
        }),
      );
    }
  });

  it("may make what the body then works on, as long as that is kept", () => {
    const { device, optimizer, train } = parts();
    let shift: Tensor | undefined;
    optimizer.on("afterStep", () => {
      shift ??= keep(zeros([3], { device }));
    });
    const recording = device.record(() => train().add(shift!));
    recording.replay();
    shift!.dispose();
    expectCode("BAD_STATE", () => recording.replay());
  });
});

it("asks the backend only for what was launched, and gives all of it back once", () => {
  const { device, optimizer, train } = parts();
  const asked: number[] = [];
  let disposed = 0;
  device.backend.record = (launches) => {
    asked.push(launches.length);
    return { replay() {}, dispose: () => void disposed++ };
  };
  device.record(train).dispose();
  expect([asked.length, disposed]).toEqual([1, 1]); // in one piece, where no hook stands between
  optimizer.on("beforeStep", () => {});
  optimizer.on("afterStep", () => {});
  const recording = device.record(train);
  expect(asked.map((launches) => launches > 0)).toEqual([true, true, true]);
  for (let i = 0; i < 2; i++) recording.dispose();
  expect(disposed).toBe(3);
});

it("disposed by a hook of its own replay, does the rest of the step first", () => {
  const { device, optimizer, train } = parts();
  const done: string[] = [];
  device.backend.record = () => ({ replay: () => void done.push("replay"), dispose: () => void done.push("dispose") });
  let replayed: { dispose(): void } | undefined;
  optimizer.on("beforeStep", () => replayed?.dispose());
  const recording = device.record(train);
  replayed = recording;
  recording.replay();
  expect(done).toEqual(["replay", "replay", "dispose", "dispose"]);
  expectCode("DISPOSED", () => recording.replay());
});

it("what the body made and freed has no number of overwrites that it would never give back", () => {
  const { device, w } = parts();
  const next = () => {
    const number = takeVersionNumber();
    returnVersionNumber(number);
    return number;
  };
  const before = next();
  device.record(() => tidy(() => void w.mul(2).add(1)));
  expect(next()).toBe(before);
});

it("console.log tells how much a recording does", () => {
  const { device, w } = parts();
  const recording = device.record(() => {
    noGrad(() => w.mul(2));
    noGrad(() => w.mul(3));
  });
  expect(inspect(recording)).toBe("Recording(launches=2)");
  recording.dispose();
  expect(inspect(recording)).toBe("Recording(disposed)");
});

it("numbers alone are drawn anew", () => {
  const { device } = parts();
  const [recorded, eager] = [new Generator(5), new Generator(5)];
  const recording = device.record(() => randn([3], { device, generator: recorded }));
  recording.replay();
  const drawn = [0, 1].map(() => [...randn([3], { device, generator: eager }).dataSync()]);
  expect([...recording.result.dataSync()]).toEqual(drawn[1]);
});

it("a gradient from before, which the body adds to and clears, is refused: a replay would not find it", () => {
  const { device, w, train } = parts();
  w.pow(2).sum().backward();
  expectCode("UNSUPPORTED", () => device.record(train));
});

describe("memory", () => {
  it("that the body made may be disposed: a replay has it still", () => {
    const { device, train, values } = parts();
    const eager = parts();
    const recording = device.record(train);
    recording.result.dispose();
    recording.replay();
    for (let i = 0; i < 2; i++) eager.train();
    expect(values()).toEqual(eager.values());
  });

  it("from before that the body uses and frees stays for the replays", () => {
    const { device, w } = parts();
    const y = parameter([1, 2, 3], { device });
    const recording = device.record(() => {
      const sum = w.detach().add(y.detach());
      y.dispose();
      return sum;
    });
    w.set([1, 1, 1]);
    recording.replay();
    expect([...recording.result.dataSync()]).toEqual([2, 3, 4]);
  });

  it("of another device that the body frees is free at once", () => {
    const [{ device, w }, other] = [parts(), new FakeDevice({ name: "other" })];
    const made = zeros([2], { device: other });
    const before = device.memory();
    const recording = device.record(() => {
      made.dispose();
      w.mul(2);
    });
    expect(other.memory()).toEqual({ bytes: 0, tensors: 0 });
    recording[Symbol.dispose]();
    expect(device.memory()).toEqual(before);
    expectCode("DISPOSED", () => recording.replay());
  });
});

it.each(["as the step left them", "set before"])(
  "16-bit parameters %s are followed once, not in each replay",
  (how) => {
    const { device, w, train } = parts("bf16");
    train();
    device.launches.length = 0;
    train();
    const once = [...device.launches];
    if (how === "set before") w.set([1, 2, 3]);
    const recording = device.record(train);
    for (let i = 0; i < 2; i++) {
      device.launches.length = 0;
      recording.replay();
      expect(device.launches).toEqual(once);
    }
  },
);

it("a replay that fails midway counts none of its steps", () => {
  const { device, optimizer, train } = parts();
  let fails = false;
  device.backend.record = () => ({
    replay() {
      if (fails) throw new Error("lost");
    },
    dispose() {},
  });
  const recording = device.record(() => {
    train();
    train();
  });
  recording.replay();
  fails = true;
  expect(() => recording.replay()).toThrow("lost");
  expect(stepsOf(optimizer)).toEqual([4]);
  fails = false;
  recording.replay();
  expect(stepsOf(optimizer)).toEqual([6]);
});

it("a replay in which an optimizer cannot count takes back those before it, and no other", () => {
  const device = new FakeDevice();
  const optimizers = [1, 2, 3].map((start) => new Momentum([parameter([start], { device })], { lr: 0.1 }));
  const recording = device.record(() => {
    for (const optimizer of optimizers) {
      optimizer.groups[0]!.params[0]!.sum().backward();
      optimizer.step();
      optimizer.zeroGrad();
    }
  });
  recording.replay();
  const { algorithm } = optimizers[0] as unknown as { algorithm: { scalars(...args: unknown[]): object } };
  const given = algorithm.scalars;
  const scalars = vi.spyOn(algorithm, "scalars").mockImplementation((...args) => {
    return scalars.mock.calls.length === 2 ? {} : given(...args);
  });
  expectCode("BAD_ARGUMENT", () => recording.replay());
  scalars.mockRestore();
  expect(optimizers.map(stepsOf)).toEqual([[2], [2], [2]]);
  recording.replay();
  expect(optimizers.map(stepsOf)).toEqual([[3], [3], [3]]);
});

it("replays of two recordings, and steps between, count on from each other", () => {
  const { device, optimizer, train } = parts();
  const [first, second] = [device.record(train), device.record(train)];
  first.replay();
  second.replay();
  second.replay();
  expect(stepsOf(optimizer)).toEqual([5]);
  first.replay();
  train();
  first.replay();
  optimizer.loadStateDict(optimizer.stateDict());
  expect(stepsOf(optimizer)).toEqual([8]);
  expectCode("BAD_STATE", () => second.replay());
});

it("a replay looks at tensors and state again only where some have changed", () => {
  const { device, w, optimizer, train } = parts();
  const recording = device.record(train);
  recording.replay();
  const looks = vi.spyOn(Tensor.prototype, "isDisposed", "get");
  const state = vi.spyOn((optimizer as unknown as { slots: Slot[][] }).slots[0]![0]!, "state", "get");
  recording.replay();
  expect([looks.mock.calls.length, state.mock.calls.length]).toEqual([0, 0]);
  w.requiresGrad = false;
  expectCode("BAD_STATE", () => recording.replay());
  w.requiresGrad = true;
  recording.replay();
  expect(looks).toHaveBeenCalled();
  expect(state).not.toHaveBeenCalled();
  vi.restoreAllMocks();
});

it("a step between replays finds all that the last one gathered", () => {
  const { device, optimizer, w, values } = parts();
  const other = parts();
  for (const each of [w, other.w]) each.grad = ones([3], { device: each.device });
  const recording = device.record(() => optimizer.step());
  const gather = vi.spyOn(Slot.prototype, "gather");
  recording.replay();
  optimizer.step();
  recording.replay();
  expect(gather).not.toHaveBeenCalled();
  for (let i = 0; i < 4; i++) other.optimizer.step();
  expect([stepsOf(optimizer), values()]).toEqual([[4], other.values()]);
  vi.restoreAllMocks();
});

import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { type DType, Generator, parameter, randn, type Tensor } from "../index";
import { StepLR } from "../schedules";
import { Momentum } from "../testing/momentum";
import { registry } from "./registry";

const device = registry.get("js");
const batches = Array.from({ length: 6 }, (_, seed) =>
  randn([4, 3], { device, generator: new Generator(seed + 1) }).dataSync(),
);

/** A regression with a schedule: its step, and what it has trained. */
function model(dtype: DType = "f32") {
  const w = parameter([0.5, -1, 2], { device, dtype });
  const x = randn([4, 3], { device, generator: new Generator(1) });
  const optimizer = new Momentum([w], { lr: 0.1 });
  const schedule = new StepLR(optimizer, { stepSize: 2, gamma: 0.5 });
  const step = (): Tensor => {
    const loss = x.mul(w).sum(1).pow(2).mean();
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  };
  return { w, x, optimizer, schedule, step };
}

describe("a recorded step", () => {
  it("replayed equals the same steps run one by one", async () => {
    const eager = model();
    const recorded = model();
    const losses: number[] = [];
    for (const batch of batches) {
      eager.x.set(batch);
      losses.push(await eager.step().item());
      eager.schedule.step();
    }
    recorded.x.set(batches[0]!);
    const recording = device.record(recorded.step);
    for (const [i, batch] of batches.entries()) {
      if (i > 0) {
        recorded.x.set(batch);
        recording.replay();
      }
      expect(await recording.result.item()).toBe(losses[i]);
      recorded.schedule.step();
    }
    expect(recorded.w.dataSync()).toAgreeWith(eager.w.dataSync());
    expect(recorded.optimizer.stateDict().state[0]!.step).toBe(batches.length);
    recording.dispose();
  });

  it.each(["f32", "f64", "bf16"] as const)("goes on without replay, and with it again, %s", (dtype) => {
    const [eager, mixed] = [model(dtype), model(dtype)];
    for (let i = 0; i < 4; i++) eager.step();
    const recording = device.record(mixed.step);
    mixed.step();
    recording.replay();
    mixed.step();
    expect(mixed.w.dataSync()).toAgreeWith(eager.w.dataSync());
  });

  it("keeps the memory it uses, and gives it back when disposed", () => {
    const { x, w, step, optimizer } = model();
    step();
    const before = device.memory().bytes;
    const recording = device.record(step);
    const xBytes = x.size * 4;
    x.dispose();
    const others = Array.from({ length: 20 }, (_, i) => randn([4, 3], { device, generator: new Generator(i) }));
    const contents = others.map((other) => other.dataSync());
    expectCode("BAD_STATE", () => recording.replay());
    for (const [i, other] of others.entries()) expect(other.dataSync()).toAgreeWith(contents[i]!);
    for (const other of others) other.dispose();
    recording.dispose();
    expect(device.memory().bytes).toBe(before - xBytes);
    optimizer.dispose();
    w.dispose();
  });

  it("counts no overwrites of what took the place of a result that was disposed", () => {
    const { x: x0 } = model();
    const doubled = device.record(() => x0.mul(2));
    doubled.result.dispose();
    const { w, step } = model();
    const other = device.record(step);
    const loss = w.pow(2).sum();
    doubled.replay();
    loss.backward(); // was refused: w seemed to be overwritten
    other.dispose();
    doubled.dispose();
  });

  it("is refused where it reads, records or waits, and leaves nothing behind", () => {
    const { x } = model();
    const before = device.memory().bytes;
    expectCode("UNSUPPORTED", () => device.record(() => x.mul(2).dataSync()));
    expectCode("UNSUPPORTED", () => device.record(() => device.record(() => x.mul(2))));
    expectCode("BAD_ARGUMENT", () => device.record(async () => x.mul(2)));
    expect(device.memory().bytes).toBe(before);
    expect(x.dataSync()).toHaveLength(12);
  });

  it("refuses options that it does not cover, and changes nothing", () => {
    const { w, optimizer, step } = model();
    const recording = device.record(step);
    const trained = w.dataSync();
    const [group] = optimizer.groups;
    for (const other of [{ averaged: true }, { maximize: true }, { clip: { value: 1 } }, { clip: { norm: 1 } }]) {
      const before = { ...group! };
      Object.assign(group!, other);
      expectCode("BAD_STATE", () => recording.replay());
      Object.assign(group!, { clip: null }, before);
    }
    optimizer.groups[0]!.lr = Number.NaN;
    expectCode("BAD_ARGUMENT", () => recording.replay());
    expect(w.dataSync()).toAgreeWith(trained);
    expect(optimizer.stateDict().state[0]!.step).toBe(1);
    recording.dispose();
    expectCode("DISPOSED", () => recording.replay());
  });
});

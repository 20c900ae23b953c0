// GradScaler's order of calls, states and refusals; its numbers stand against PyTorch's in e2e/goldens.
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { parameter, tensor } from "../create";
import { FakeDevice } from "../testing/fake-backend";
import { Momentum } from "../testing/momentum";
import type { DType } from "../values/dtype";
import { GradScaler } from "./scaler";

function parts({ device = new FakeDevice(), dtype = "f32" as DType, ...options } = {}) {
  const w = parameter([1, 2], { device, dtype });
  const optimizer = new Momentum([w], { lr: 0.5, momentum: 0, ...options });
  const scaler = new GradScaler({ initScale: 8, growthInterval: 2 });
  const backward = (by: number) => {
    optimizer.zeroGrad();
    scaler.scale(w.mul(tensor([by, 1], { device, dtype })).sum()).backward();
  };
  return { device, w, optimizer, scaler, backward };
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

it("waits for the host where that cannot wait, and refuses the next step until then", async () => {
  const { w, optimizer, scaler, backward } = parts({ device: new FakeDevice({ async: true }) });
  for (const by of [1, Infinity, 1]) {
    backward(by);
    const stepped = scaler.step(optimizer);
    expect(stepped).toBeInstanceOf(Promise);
    await scaler.update();
    await stepped;
  }
  expect(optimizer.stateDict().state["0"]!.step).toBe(2);
  expect([...(await w.data())]).toEqual([0, 1]);
  expect(await scaler.getScale()).toBe(4);
  backward(1);
  const waiting = scaler.step(optimizer);
  expectCode("BAD_STATE", () => scaler.step(new Momentum([w])));
  await waiting;
});

it("passes everything through where it is not enabled", async () => {
  const w = parameter([1]);
  const optimizer = new Momentum([w], { lr: 1, momentum: 0 });
  const scaler = new GradScaler({ enabled: false });
  scaler.scale(w.mul(3).sum()).backward();
  scaler.unscale(optimizer);
  scaler.step(optimizer);
  scaler.update();
  expect([w.dataSync()[0], await scaler.getScale(), scaler.stateDict()]).toEqual([-2, 1, {}]);
});

it("takes a factor that it is given", async () => {
  const { optimizer, scaler, backward } = parts();
  backward(1);
  scaler.step(optimizer);
  scaler.update(32);
  expect(await scaler.getScale()).toBe(32);
  backward(1);
  scaler.step(optimizer);
  expectCode("BAD_ARGUMENT", () => scaler.update(-1));
  scaler.update();
  expect(await scaler.getScale()).toBe(32);
});

it("frees what it has", () => {
  const { device, optimizer, scaler, backward, w } = parts();
  const before = device.memory().tensors;
  backward(1);
  scaler.step(optimizer);
  scaler.update();
  scaler.dispose();
  optimizer.zeroGrad();
  optimizer.dispose();
  expect(device.memory().tensors - before).toBeLessThanOrEqual(0 + Number(w.grad !== null) + 6);
});

it.each(["in the recording", "after it"])("leaves nothing of a recorded step behind: update() %s", (place) => {
  const { device, w, optimizer, scaler } = parts();
  const before = device.memory();
  const recording = device.record(() => {
    optimizer.zeroGrad();
    scaler.scale(w.sum()).backward();
    scaler.step(optimizer);
    if (place === "in the recording") scaler.update();
    optimizer.zeroGrad();
  });
  if (place === "after it") scaler.update();
  recording.replay();
  expect([...w.dataSync()]).toEqual([0, 1]);
  recording.dispose();
  scaler.dispose();
  optimizer.dispose();
  expect(device.memory()).toEqual(before);
});

it.each([
  ["BAD_STATE", (s: GradScaler, o: Momentum) => s.step(o)],
  ["BAD_STATE", (s: GradScaler, o: Momentum) => s.unscale(o)],
  ["BAD_STATE", (s: GradScaler) => s.update()],
  ["BAD_STATE", (s: GradScaler) => s.loadStateDict({})],
  ["UNSUPPORTED", (s: GradScaler, o: Momentum) => s.step(o, () => 1)],
  ["BAD_ARGUMENT", () => new GradScaler({ growthFactor: 1 })],
  ["BAD_ARGUMENT", () => new GradScaler({ backoffFactor: 1 })],
  ["BAD_ARGUMENT", () => new GradScaler({ growthInterval: 0.5 })],
  ["BAD_ARGUMENT", () => new GradScaler({ initScale: Infinity })],
  ["BAD_ARGUMENT", () => new GradScaler({ growth: 2 } as object)],
] as const)("refuses with %s: %s", (code, call) => {
  const { optimizer, scaler } = parts();
  expectCode(code, () => void call(scaler, optimizer));
});

/** GradScaler's steps with hooks: what these find is what they would without a scaler. */
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { parameter, tensor } from "../../create";
import { Momentum } from "../../testing/momentum";
import type { DType } from "../../values/dtype";
import { clipGradNorm, clipGradValue } from "./clip";
import { GradScaler } from "./scaler";

function parts(dtype: DType = "f32", initScale = 1024) {
  const w = parameter([1, 2], { dtype });
  const optimizer = new Momentum([w], { lr: 0.5 });
  const scaler = new GradScaler({ initScale });
  const by = tensor([2, 3], { dtype });
  const body = () => {
    scaler.scale(w.mul(by).sum()).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zeroGrad();
  };
  return { w, optimizer, by, body };
}

it.each<[string, DType, (w: ReturnType<typeof parameter>) => void]>([
  ["clips norms of", "f32", (w) => clipGradNorm([w], 0.5).dispose()],
  ["clips norms of", "f64", (w) => clipGradNorm([w], 0.5).dispose()],
  ["clips norms of", "bf16", (w) => clipGradNorm([w], 0.5).dispose()],
  ["clips", "f32", (w) => clipGradValue([w], 0.25)],
  ["sets gradients of", "f32", (w) => w.grad!.set([3, -1])],
])("a hook before the step that %s %s finds them unscaled", (_, dtype, hook) => {
  const runs = [parts(dtype), parts(dtype, 1)];
  for (const { w, optimizer, body } of runs) {
    optimizer.on("beforeStep", () => hook(w));
    for (let step = 0; step < 3; step++) body();
  }
  const [scaled, plain] = runs.map(({ w }) => [...w.dataSync()]);
  expect(scaled).toEqual(plain);
  expect(scaled).not.toEqual([1, 2]);
});

it("is not run by a step that is skipped", () => {
  const { w, optimizer, by, body } = parts();
  optimizer.on("beforeStep", () => w.grad!.set([1, 1]));
  by.set([Infinity, 1]);
  body();
  expect([...w.dataSync()]).toEqual([1, 2]);
});

it("replays refuse a hook before the step that came since, and go on when it is gone", () => {
  const { w, optimizer, body } = parts();
  const recording = w.device.record(body);
  const off = optimizer.on("beforeStep", () => {});
  expectCode("BAD_STATE", () => recording.replay());
  off();
  recording.replay();
  expect(optimizer.stateDict().state["0"]!.step).toBe(2);
  recording.dispose();
});

it("a bound that a hook sets is replayed as it is run", () => {
  const runs = [parts(), parts()];
  for (const { optimizer } of runs) {
    optimizer.on("beforeStep", ({ groups }) => {
      groups[0]!.clip = { norm: 0.5 };
    });
  }
  const [recorded, eager] = runs as [ReturnType<typeof parts>, ReturnType<typeof parts>];
  const recording = recorded.w.device.record(recorded.body);
  for (let step = 0; step < 2; step++) recording.replay();
  for (let step = 0; step < 3; step++) eager.body();
  expect([...recorded.w.dataSync()]).toEqual([...eager.w.dataSync()]);
  recording.dispose();
});

/** GradScaler's steps with hooks: what these find is what they would without a scaler. */
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import { clipGradNorm, clipGradValue } from "../optimizer/gradients/clip";
import type { DType } from "../values/dtype";
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

it("compiled steps see a hook before the step that came since, and that it is gone", () => {
  const runs = [parts(), parts()];
  const steps = [compile(runs[0]!.body), runs[1]!.body];
  const both = () => {
    for (const step of steps) step();
  };
  for (let i = 0; i < 3; i++) both();
  const offs = runs.map(({ w, optimizer }) => optimizer.on("beforeStep", () => clipGradNorm([w], 0.5).dispose()));
  for (let i = 0; i < 4; i++) both();
  for (const off of offs) off();
  for (let i = 0; i < 3; i++) both();
  const [compiled, eager] = runs.map(({ w, optimizer }) => [...w.dataSync(), optimizer.stateDict().state["0"]!.step]);
  expect(compiled).toEqual(eager);
});

it("a bound that a hook sets holds in compiled steps", () => {
  const runs = [parts(), parts()];
  for (const { optimizer } of runs) {
    optimizer.on("beforeStep", ({ groups }) => {
      groups[0]!.clip = { norm: 0.5 };
    });
  }
  const steps = [compile(runs[0]!.body), runs[1]!.body];
  for (let i = 0; i < 6; i++) for (const step of steps) step();
  const [compiled, eager] = runs.map(({ w }) => [...w.dataSync()]);
  expect(compiled).toEqual(eager);
});

it("a hook that sets another option than the compiled step covers is rejected", () => {
  const { w, optimizer } = parts();
  let norm = 0.5;
  optimizer.on("beforeStep", ({ groups }) => {
    groups[0]!.clip = { norm };
  });
  w.grad = tensor([3, 4]);
  const step = compile(() => optimizer.step());
  for (let i = 0; i < 5; i++) step();
  norm = 0.25;
  const before = w.tolist();
  expectCode("CHANGED", step);
  expect(w.tolist()).toEqual(before);
  step();
});

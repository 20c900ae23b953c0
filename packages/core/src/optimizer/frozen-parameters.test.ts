// Optimizers skip parameters without a gradient, keep their places, and train them once they are unfrozen.
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { ExponentialMovingAverage } from "../averages/moving-average";
import { compile } from "../compile/compile";
import { parameter, tensor } from "../create";
import { tidy } from "../device/scope";
import { GradScaler } from "../loss-scaling/scaler";
import { clipGradNorm, clipGradNormEach, clipGradValue } from "./gradients/clip";

/** Three parameters, of which the first is frozen. */
function parts(options: object = {}) {
  const device = new FakeDevice();
  const all = [1, 2, 3].map((value) => parameter([value, -value], { device }));
  const [frozen, ...trained] = all as [(typeof all)[0], ...typeof all];
  frozen.requiresGrad = false;
  const optimizer = new Momentum(all, { lr: 0.1, ...options });
  const x = tensor([0.5, 2], { device });
  const step = () => {
    all
      .reduce((sum, w) => sum.add(w.mul(x)), x)
      .square()
      .sum()
      .backward();
    optimizer.step();
    optimizer.zeroGrad();
  };
  return { device, all, frozen, trained, optimizer, step };
}
const values = (list: ReturnType<typeof parts>["all"]) => list.map((w) => [...w.dataSync()]);

describe("a frozen parameter", () => {
  it("has its number in the state dict, and no state and no memory", () => {
    const { device, trained, optimizer, step } = parts();
    const before = device.memory();
    tidy(step);
    const { groups, state } = optimizer.stateDict();
    expect(groups[0]!.params).toEqual(["0", "1", "2"]);
    expect(Object.keys(state)).toEqual(["1", "2"]);
    expect(device.memory().tensors - before.tensors).toBe(trained.length);
  });

  it.each(["eager", "compiled"])("is trained once it is unfrozen, %s, as if it were there from then on", (how) => {
    const { all, frozen, optimizer, step } = parts();
    const run = how === "eager" ? () => tidy(step) : compile(step);
    for (let i = 0; i < 4; i++) run();
    expect([...frozen.dataSync()]).toEqual([1, -1]);
    const other = parts();
    for (let i = 0; i < 4; i++) tidy(other.step);
    for (const each of [frozen, other.frozen]) each.requiresGrad = true;
    for (let i = 0; i < 4; i++) {
      run();
      tidy(other.step);
    }
    expect([...frozen.dataSync()]).not.toEqual([1, -1]);
    expect(values(all)).toEqual(values(other.all));
    expect(Object.values(optimizer.stateDict().state).map(({ step }) => step)).toEqual([4, 8, 8]);
  });

  it.each(["eager", "compiled"])("stays where it is once it is frozen, and keeps its state, %s", (how) => {
    const { all, optimizer, step } = parts();
    const run = how === "eager" ? () => tidy(step) : compile(step);
    for (let i = 0; i < 4; i++) run();
    all[1]!.requiresGrad = false;
    const before = [...all[1]!.dataSync()];
    for (let i = 0; i < 4; i++) run();
    expect([...all[1]!.dataSync()]).toEqual(before);
    expect(Object.values(optimizer.stateDict().state).map(({ step }) => step)).toEqual([4, 8]);
  });

  it("is loaded by its number from a state in which it has none", () => {
    const [saved, loaded] = [parts(), parts()];
    for (let i = 0; i < 3; i++) tidy(saved.step);
    loaded.optimizer.loadStateDict(saved.optimizer.stateDict());
    loaded.all.forEach((w, i) => {
      w.set(saved.all[i]!);
    });
    for (const { frozen, step } of [saved, loaded]) {
      frozen.requiresGrad = true;
      tidy(step);
    }
    expect(values(loaded.all)).toEqual(values(saved.all));
  });

  it("is nothing to clip, to scale or to regularize", () => {
    const { all, frozen, trained, optimizer, device } = parts({
      clip: { norm: 1 },
      regularizer: { kind: "l2", coefficient: 1 },
    });
    const scaler = new GradScaler();
    scaler.scale(all.reduce((sum, w) => sum.add(w)).sum()).backward();
    void scaler.step(optimizer);
    void scaler.update();
    for (const w of trained) w.grad = tensor([3, 4], { device });
    expect(Math.abs(clipGradNorm(all, 1).dataSync()[0]! - Math.sqrt(50))).toBeLessThan(1e-6);
    clipGradNormEach(all, 1);
    clipGradValue(all, 1);
    expect(frozen.grad).toBe(null);
    expect([...frozen.dataSync()]).toEqual([1, -1]);
  });

  it("has an average, as PyTorch's AveragedModel keeps it", () => {
    const { all, frozen } = parts();
    const average = new ExponentialMovingAverage(all, { decay: 0.5 });
    average.update();
    frozen.set([3, 3]);
    average.update();
    expect([...average.stateDict()["module.0"]!.dataSync()]).toEqual([2, 1]);
  });
});

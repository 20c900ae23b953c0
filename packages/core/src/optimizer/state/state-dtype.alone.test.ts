// The option `stateDType`: averages kept in 16 bits, updated from their values and rounded once a step.
import { expectCode } from "@opt/testkit";
import { expect, it, vi } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { Momentum, type MomentumOptions } from "../../../testing/momentum";
import { parameter, tensor } from "../../create";
import type { Tensor } from "../../tensor/tensor";
import type { DType } from "../../values/dtype";
import { toStored, widen } from "../../values/half";
import type { GroupOptions } from "../algorithm";

const GRADIENT = [0.11, -0.07, 3];
const bf16 = (x: number) => widen(Uint16Array.of(toStored("bf16")(x)), "bf16")[0]!;

function parts(dtype: DType = "f32", options: Partial<MomentumOptions> & GroupOptions = { stateDType: "bf16" }) {
  const device = new FakeDevice();
  const w = parameter([0.3, -1.7, 2.9], { dtype, device, name: "w" });
  const optimizer = new Momentum([w], { lr: 0.013, ...options });
  const train = (steps: number) => {
    for (let i = 0; i < steps; i++) {
      w.grad = tensor(GRADIENT, { dtype, device });
      optimizer.step();
    }
  };
  const velocity = () => optimizer.stateDict().state.w!.velocity as Tensor;
  return { device, w, optimizer, train, velocity };
}

it("rounds the state after each step, and steps by what it was before", () => {
  const { w, train, velocity } = parts();
  train(3);
  const expected = [0.3, -1.7, 2.9].map((start, i) => {
    let [p, v] = [Math.fround(start), 0];
    for (let t = 1; t <= 3; t++) {
      const fresh = Math.fround(Math.fround(0.9 * (1 - 1 / (t + 1))) * v + Math.fround(GRADIENT[i]!));
      p = Math.fround(p + Math.fround(Math.fround(-0.013) * fresh));
      v = bf16(fresh);
    }
    return [p, v];
  });
  expect(velocity().dtype).toBe("bf16");
  expect([...w.dataSync()].map((p, i) => [p, velocity().dataSync()[i]])).toEqual(expected);
});

it("is float64 for float64 parameters", () => {
  const { train, velocity } = parts("f64");
  train(1);
  expect(velocity().dtype).toBe("f64");
});

it.each(["f32", "bf16", undefined] as const)("is the optimizer's own, %s, whatever the loaded state says", (own) => {
  for (const saved of ["f32", "bf16", undefined] as const) {
    const [from, to] = [parts("f32", { stateDType: saved, lr: 0.25 }), parts("f32", { stateDType: own })];
    from.train(2);
    to.train(1);
    to.optimizer.loadStateDict(from.optimizer.stateDict());
    expect(to.velocity().dtype).toBe(own ?? "f32");
    expect(to.optimizer.groups[0]!.stateDType).toBe(own);
    expect(to.optimizer.groups[0]!.lr).toBe(0.25);
  }
});

it("stays as it is where the option changes between steps, beside new state", () => {
  const { optimizer, train } = parts("f32", { stateDType: "bf16", momentum: 0 });
  train(1);
  optimizer.groups[0]!.stateDType = "f32";
  optimizer.groups[0]!.averaged = true;
  train(1);
  const { velocity, grad_avg } = optimizer.stateDict().state.w!;
  const [narrow, wide] = [velocity as Tensor, grad_avg as Tensor];
  expect([narrow.dtype, wide.dtype]).toEqual(["bf16", "f32"]);
  expect([...narrow.dataSync()]).toEqual(GRADIENT.map(bf16));
  expect([...wide.dataSync()]).toEqual(GRADIENT.map((x) => Math.fround(x) / 2));
});

it("is its own where a step failed before the option changed", () => {
  const device = new FakeDevice();
  const params = [0, 1].map(() => parameter([0], { device }));
  const optimizer = new Momentum(params, { lr: 1, stateDType: "bf16" });
  params[0]!.grad = tensor([1], { device });
  const { launch: real } = device.backend;
  const launch = vi.spyOn(device.backend, "launch").mockImplementation((each) => {
    if (each.kind === "rule") throw new Error("lost");
    real(each);
  });
  expect(() => optimizer.step()).toThrow("lost");
  launch.mockRestore();
  optimizer.groups[0]!.stateDType = "f32";
  optimizer.groups[0]!.averaged = true; // of which both have none yet
  params[1]!.grad = tensor([1], { device });
  optimizer.step();
  const states = Object.values(optimizer.stateDict().state).map(({ velocity }) => velocity as Tensor);
  expect(states.map(({ dtype }) => dtype)).toEqual(["bf16", "f32"]);
  expect(states.map((velocity) => [...velocity.dataSync()])).toEqual([[1], [1]]);
});

it.each(["f16", "q4", 16, null])("rejects %j", (stateDType) => {
  expectCode("BAD_ARGUMENT", () => parts("f32", { stateDType } as object));
});

it("rejects q8 before it was enabled, and says how", () => {
  expectCode("BAD_ARGUMENT", () => parts("f32", { stateDType: "q8" }));
  expect(() => parts("f32", { stateDType: "q8" })).toThrow("enableQ8()");
});

// Packed state, `stateDType: "q8"` and `"bf16x"`: averages in codes of 8 bits or in 24 bits, updated from their values and packed once a step.
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { Momentum } from "../../../testing/momentum";
import { type TrainedOptions, trained } from "../../../testing/trained";
import { parameter, randn, tensor } from "../../create";
import { viewAsComplex } from "../../ops/complex";
import { Generator } from "../../random/generator";
import { packedBytes } from "../../rule/codebook";
import type { Rule } from "../../rule/rule";
import { functional } from "../../stepping/functional";
import { span } from "../../tensor/span";
import type { Tensor } from "../../tensor/tensor";
import type { DType } from "../../values/dtype";
import { enableQ8 } from "./packed-state";
import { statePacking } from "./state";

enableQ8();

const SIZE = 4096 + 300;

const parts = (options: TrainedOptions = {}, dtype: DType = "f32", size = SIZE) =>
  trained({ stateDType: "q8", ...options }, dtype, size);

it("steps by the state's values, and packs it afterwards", () => {
  const [narrow, wide] = [parts(), parts({ stateDType: "f32" })];
  for (const each of [narrow, wide]) each.train(1);
  // From a state of zeros the first step is that of float32.
  expect([...narrow.w.dataSync()]).toEqual([...wide.w.dataSync()]);
  const [packed, exact] = [narrow.velocity().dataSync(), wide.velocity().dataSync()];
  const gaps = 0.9 / 64 / 2;
  const largest = Math.max(...exact.map(Math.abs));
  expect(Math.max(...exact.map((x, i) => Math.abs(x - packed[i]!)))).toBeLessThan(gaps * largest);
  expect(packed).not.toEqual(exact);
  for (const each of [narrow, wide]) each.train(1);
  expect([...narrow.w.dataSync()]).not.toEqual([...wide.w.dataSync()]);
});

it("keeps 260 bytes for 256 elements, and float32 for parameters below 4096", () => {
  const { device, optimizer, train } = parts();
  train(1);
  const { bytes } = device.memory();
  optimizer.dispose();
  const ofState = bytes - device.memory().bytes;
  expect([ofState >= 2 * packedBytes(SIZE, "q8"), ofState < 2 * packedBytes(SIZE, "q8") + 512]).toEqual([true, true]);
  const small = parts({}, "f32", 4095);
  small.train(2);
  const exact = parts({ stateDType: "f32" }, "f32", 4095);
  exact.train(2);
  expect(small.words()).toEqual(exact.words());
});

it("belongs to a parameter that is part of other memory, and leaves what is beside it", () => {
  const [own, part] = [parts(), parts()];
  const all = tensor(new Float32Array(SIZE + 200).fill(7), { device: part.device });
  const w = span(all, 100, 100 + SIZE);
  w.requiresGrad = true;
  w.set(part.w.dataSync());
  const optimizer = new Momentum([w], { lr: 1e-3, stateDType: "q8" });
  for (let i = 0; i < 3; i++) {
    own.give();
    w.grad = tensor(own.w.grad!.dataSync(), { device: part.device });
    for (const each of [own.optimizer, optimizer]) each.step();
  }
  const velocity = optimizer.stateDict().state["0"]!.velocity as Tensor;
  expect(w.dataSync()).toEqual(own.w.dataSync());
  expect(velocity.dataSync()).toEqual(own.velocity().dataSync());
  const values = [...all.dataSync()];
  expect([...values.slice(0, 100), ...values.slice(100 + SIZE)]).toEqual(new Array(200).fill(7));
});

it("keeps 0 for what is not finite, and its neighbours", () => {
  const { w, optimizer, velocity, device } = parts();
  const gradient = new Float32Array(SIZE).fill(1);
  gradient[5] = Number.NaN;
  gradient[6] = Infinity;
  w.grad = tensor(gradient, { device });
  optimizer.step();
  expect([...velocity().dataSync().subarray(4, 8)]).toEqual([1, -0, -0, 1]);
  expect(w.dataSync()[5]).toBeNaN();
});

it("takes state in float32 over, and gives it back", () => {
  const [from, to] = [parts({ stateDType: "f32" }), parts()];
  from.train(2);
  const saved = from.optimizer.stateDict();
  const { stateDType: _, ...rest } = saved.groups[0]!;
  to.optimizer.loadStateDict({ ...saved, groups: [rest as (typeof saved.groups)[0]] });
  const packed = to.velocity().dataSync();
  const nearest = Math.max(
    ...from
      .velocity()
      .dataSync()
      .map((x, i) => Math.abs(x - packed[i]!)),
  );
  expect(nearest).toBeLessThan(0.05);
  from.optimizer.loadStateDict({ ...to.optimizer.stateDict(), groups: saved.groups });
  expect([...from.velocity().dataSync()]).toEqual([...packed]);
  expect(from.optimizer.groups[0]!.stateDType).toBe("f32");
});

it("stands beside groups with other state, and stays where it was chosen when a state is loaded", () => {
  const device = new FakeDevice();
  const [a, b] = [1, 2].map((seed) => parameter(randn([SIZE], { generator: new Generator(seed), device }))) as [
    Tensor,
    Tensor,
  ];
  const optimizer = new Momentum([{ params: [a], stateDType: "q8" }, { params: [b] }], { lr: 0.1 });
  for (const w of [a, b]) w.grad = randn([SIZE], { generator: new Generator(5), device });
  optimizer.step();
  const alone = new Momentum([{ params: [b], stateDType: "f32" }, { params: [a] }], { lr: 0.1 });
  alone.loadStateDict(optimizer.stateDict());
  expect(alone.groups.map(({ stateDType }) => stateDType)).toEqual(["f32", undefined]);
  expect(Object.values(alone.stateDict().state).map(({ velocity }) => (velocity as Tensor).dtype)).toEqual([
    "f32",
    "f32",
  ]);
});

it.each<DType>(["f64", "c64"])("leaves the state of %s parameters as it is", (dtype) => {
  const device = new FakeDevice();
  const values = randn(dtype === "c64" ? [5000, 2] : [5000], { generator: new Generator(1), device });
  const w = parameter(dtype === "c64" ? viewAsComplex(values) : values.to(dtype));
  const optimizer = new Momentum([w], { stateDType: "q8" });
  w.grad = dtype === "c64" ? viewAsComplex(values) : values.to(dtype);
  optimizer.step();
  expect((optimizer.stateDict().state["0"]!.velocity as Tensor).dtype).toBe(dtype);
});

it("rounds each element of bf16x to 24 bits, and keeps 768 bytes for 256", () => {
  const [kept, exact] = [parts({ stateDType: "bf16x" }), parts({ stateDType: "f32" })];
  for (const each of [kept, exact]) each.train(1);
  const [few, all] = [kept.velocity().dataSync(), exact.velocity().dataSync()];
  const most = Math.max(...all.map((x, i) => Math.abs(x - few[i]!) / Math.abs(x)));
  expect([most > 0, most <= 2 ** -16]).toEqual([true, true]);
  const { bytes } = kept.device.memory();
  kept.optimizer.dispose();
  const ofState = bytes - kept.device.memory().bytes;
  const least = 2 * packedBytes(SIZE, "bf16x");
  expect([ofState >= least, ofState < least + 512]).toEqual([true, true]);
});

it("keeps infinities and NaN in bf16x", () => {
  const { w, optimizer, velocity, device } = parts({ stateDType: "bf16x" });
  const gradient = new Float32Array(SIZE).fill(1);
  gradient.set([Number.NaN, Infinity, -Infinity], 5);
  w.grad = tensor(gradient, { device });
  optimizer.step();
  expect([...velocity().dataSync().subarray(4, 9)]).toEqual([1, Number.NaN, Infinity, -Infinity, 1]);
});

it("loads what bf16x saved without a change", () => {
  const [from, to] = [parts({ stateDType: "bf16x" }), parts({ stateDType: "bf16x" })];
  from.train(3);
  to.w.set(from.w.dataSync());
  to.b.set(from.b.dataSync());
  to.optimizer.loadStateDict(from.optimizer.stateDict());
  for (const each of [from, to]) each.train(2);
  expect(to.words()).toEqual(from.words());
});

it("asks for a device that has it, and for rules that name their own buffers", () => {
  const { device, train } = parts();
  (device.backend as { packs?: boolean }).packs = false;
  expectCode("UNSUPPORTED", () => train(1));
  const rule = { buffers: ["param", "grad", "v"], scalars: [], nonNegative: ["w"], name: "r" } as unknown as Rule;
  const param = parameter(randn([4096]));
  expectCode("BAD_ARGUMENT", () => statePacking.format!(rule, "v", param, "q8"));
});

it("rejects what it cannot go with by name", () => {
  expectCode("UNSUPPORTED", () => parts({ lazyMode: true }));
  expectCode("UNSUPPORTED", () => parts({ lazyMode: true, stateDType: "bf16x" }));
  for (const stateDType of ["q8", "bf16x"] as const)
    expectCode("UNSUPPORTED", () => functional(Momentum, { stateDType }));
});

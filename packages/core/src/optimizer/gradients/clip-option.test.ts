// The option `clip`: the bits of clipping and then stepping, in the launch of the step.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { Momentum } from "../../../testing/momentum";
import { compile } from "../../compile/compile";
import { parameter, tensor } from "../../create";
import type { Tensor } from "../../tensor/tensor";
import type { DType } from "../../values/dtype";
import type { ClipOptions } from "../algorithm";
import { clipGradNorm, clipGradValue } from "./clip";
import { l1, l2 } from "./regularizer";

const GRADIENTS = [
  [0.7, -2.3, 1e-3],
  [5, 0.1],
];

function parts(dtype: DType, options: object = {}, device: FakeDevice = new FakeDevice()) {
  const params = GRADIENTS.map((values) =>
    parameter(
      values.map((_, i) => 0.5 - i),
      { dtype, device },
    ),
  );
  return { device, params, optimizer: new Momentum(params, { lr: 0.1, ...options }) };
}

function setGradients(params: readonly Tensor[], by = 1): void {
  for (const [i, param] of params.entries()) {
    param.grad = tensor(
      GRADIENTS[i]!.map((g) => g * by),
      { dtype: param.dtype, device: param.device },
    );
  }
}

const valuesOf = (params: readonly Tensor[]) => params.map((param) => [...param.dataSync()]);

const CLIPS: ClipOptions[] = [{ norm: 0.8 }, { norm: 100 }, { value: 0.3 }, { norm: 2, value: 0.4 }, { norm: 0 }];

describe.each<DType>(["f32", "f64"])("%s", (dtype) => {
  it.each(CLIPS)("%j is clipping, then stepping", (clip) => {
    for (const options of [{}, { maximize: true, regularizer: l2(0.1) }, { regularizer: l1(0.05) }]) {
      const [fused, apart] = [parts(dtype, { ...options, clip }), parts(dtype, options)];
      for (let step = 0; step < 3; step++) {
        for (const { params } of [fused, apart]) setGradients(params, 1 + step);
        if (clip.norm !== undefined) clipGradNorm(apart.params, clip.norm);
        if (clip.value !== undefined) clipGradValue(apart.params, clip.value);
        fused.optimizer.step();
        apart.optimizer.step();
      }
      expect(valuesOf(fused.params)).toEqual(valuesOf(apart.params));
    }
  });
});

it.each(["f32", "bf16"] as const)("reads gradients of %s twice and writes none", (dtype) => {
  const { device, params, optimizer } = parts(dtype, { clip: { norm: 0.8, value: 0.5 } });
  setGradients(params);
  optimizer.step();
  const before = params.map(({ grad }) => [...grad!.dataSync()]);
  device.launches.length = 0;
  optimizer.step();
  // The second is the norm of the norms.
  expect(device.launches.filter((kind) => kind !== "map")).toEqual(["sumSquares", "sumSquares", "rule"]);
  expect(params.map(({ grad }) => [...grad!.dataSync()])).toEqual(before);
});

it("limits the norm of all groups that ask for it together", () => {
  const device = new FakeDevice();
  const make = (clip: ClipOptions | null) => {
    const params = [0, 1, 2].map(() => parameter([1], { device }));
    for (const [i, param] of params.entries()) param.grad = tensor([3 + i], { device });
    const groups = params.map((param, i) => ({ params: [param], ...(i === 2 ? {} : { clip }) }));
    return { params, optimizer: new Momentum(groups, { lr: 1, momentum: 0 }) };
  };
  const [fused, apart] = [make({ norm: 1 }), make(null)];
  clipGradNorm(apart.params.slice(0, 2), 1);
  for (const { optimizer } of [fused, apart]) optimizer.step();
  expect(valuesOf(fused.params)).toEqual(valuesOf(apart.params));
});

it("limits compiled steps, also where the limit was set since", () => {
  const [compiled, eager] = [parts("f32", { clip: { norm: 0.8 } }), parts("f32", { clip: { norm: 0.8 } })];
  for (const { params } of [compiled, eager]) setGradients(params);
  const step = compile(() => compiled.optimizer.step());
  const both = (by: number) => {
    for (const { params } of [compiled, eager])
      for (const [i, param] of params.entries()) param.grad!.set(GRADIENTS[i]!.map((g) => g * by));
    step();
    eager.optimizer.step();
  };
  for (const by of [1, 2, 1e-3, 3, 5]) both(by);
  expect(valuesOf(compiled.params)).toEqual(valuesOf(eager.params));
  for (const { optimizer } of [compiled, eager]) optimizer.groups[0]!.clip!.norm = 0.9;
  for (const by of [1, 2, 4]) both(by);
  for (const { optimizer } of [compiled, eager]) optimizer.groups[0]!.clip = null;
  for (const by of [1, 2, 4]) both(by);
  expect(valuesOf(compiled.params)).toEqual(valuesOf(eager.params));
});

it("is saved, and loaded over another limit or none", () => {
  const [from, to] = [parts("f32", { clip: { norm: 0.8 } }), parts("f32", { clip: { value: 3 } })];
  to.optimizer.loadStateDict(from.optimizer.stateDict());
  expect(to.optimizer.groups[0]!.clip).toEqual({ norm: 0.8 });
  const none = parts("f32", { clip: null });
  none.optimizer.loadStateDict(from.optimizer.stateDict());
  expect(none.optimizer.groups[0]!.clip).toEqual({ norm: 0.8 });
});

it("is each group's own, and that of a saved state", () => {
  const clip = { norm: 1 };
  const optimizer = new Momentum([{ params: [parameter([1])] }, { params: [parameter([1])] }], { clip });
  const saved = optimizer.stateDict();
  optimizer.groups[0]!.clip!.norm = 5;
  clip.norm = 7;
  const limits = [...optimizer.groups, ...(saved.groups as { clip?: ClipOptions }[])].map((group) => group.clip?.norm);
  expect(limits).toEqual([5, 1, 1, 1]);
});

it("limits nothing where a limit is undefined", () => {
  const { optimizer } = parts("f32", { clip: { norm: undefined, value: undefined } });
  expect(() => optimizer.step()).not.toThrow();
});

it("does without gradients", () => {
  const { params, optimizer } = parts("f32", { clip: { norm: 1 } });
  optimizer.step();
  expect(valuesOf(params)).toEqual(valuesOf(parts("f32").params));
});

it.each([{ norms: 1 }, { norm: -1 }, { value: Number.NaN }, { norm: "1" }, 1])("rejects %j", (clip) => {
  expectCode("BAD_ARGUMENT", () => parts("f32", { clip }));
});

it("rejects one norm of several devices", () => {
  const params = [new FakeDevice(), new FakeDevice()].map((device) => parameter([1], { device }));
  for (const param of params) param.grad = tensor([1], { device: param.device });
  const optimizer = new Momentum(params, { clip: { norm: 1 } });
  expectCode("DEVICE_MISMATCH", () => optimizer.step());
  expect(valuesOf(params)).toEqual([[1], [1]]);
});

it.each<keyof ClipOptions>(["norm", "value"])("a limit of the %s that is deleted in place limits no more", (name) => {
  const both = [0, 1].map(() => parts("f32", { clip: { [name]: 0.1 } }));
  for (const [i, { params, optimizer }] of both.entries()) {
    setGradients(params);
    optimizer.step();
    const group = optimizer.groups[0]!;
    if (i === 0) delete (group.clip as Record<string, unknown>)[name];
    else group.clip = {};
    optimizer.step();
  }
  expect(valuesOf(both[0]!.params)).toEqual(valuesOf(both[1]!.params));
});

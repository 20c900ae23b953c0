// What `stepArrays` rejects before anything changes; its bits on every device stand in e2e/goldens.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import { compile } from "../compile/compile";
import { parameter } from "../create";
import { init } from "../device/registry";
import type { ErrorCode } from "../errors/errors";
import { type FloatArray, type PerParameter, stepArrays } from "./step-arrays";

const js = await init("js");

const one = (): [Momentum, Record<string, FloatArray>] => {
  const w = Float32Array.of(1, 2);
  return [new Momentum([["w", parameter(w, { device: js })]]), { w }];
};
const grad = Float32Array.of(1, 1);
const detached = () => {
  const array = Float32Array.of(1, 2);
  structuredClone(array.buffer, { transfer: [array.buffer] });
  return array;
};

const REFUSED: [string, ErrorCode, (w: FloatArray) => [unknown, unknown]][] = [
  ["a missing parameter", "BAD_ARGUMENT", () => [{}, { w: grad }]],
  ["a misspelt gradient", "BAD_ARGUMENT", (w) => [{ w }, { W: grad }]],
  ["a gradient too many", "BAD_ARGUMENT", (w) => [{ w }, { w: grad, b: grad }]],
  ["a list of two for one", "BAD_ARGUMENT", (w) => [[w, w], [grad]]],
  ["an array by itself", "BAD_ARGUMENT", (w) => [w, grad]],
  ["null for arrays", "BAD_ARGUMENT", () => [null, { w: grad }]],
  ["a number for gradients", "BAD_ARGUMENT", (w) => [{ w }, 1]],
  ["a Map", "BAD_ARGUMENT", (w) => [new Map([["w", w]]), { w: grad }]],
  ["an undefined gradient", "BAD_ARGUMENT", (w) => [{ w }, { w: undefined }]],
  ["no parameter", "BAD_ARGUMENT", () => [{ w: null }, { w: grad }]],
  ["numbers in a list", "BAD_ARGUMENT", (w) => [{ w }, { w: [1, 1] }]],
  ["another dtype", "BAD_DTYPE", (w) => [{ w }, { w: Float64Array.of(1, 1) }]],
  ["another length", "BAD_SHAPE", (w) => [{ w }, { w: new Float32Array(3) }]],
  ["a detached parameter", "BAD_SHAPE", () => [{ w: detached() }, { w: grad }]],
  ["a detached gradient", "BAD_SHAPE", (w) => [{ w }, { w: detached() }]],
];

describe("is rejected, and nothing changes:", () => {
  it.each(REFUSED)("%s (%s)", (_, code, given) => {
    const [optimizer, { w }] = one();
    const [params, grads] = given(w!) as [PerParameter<FloatArray>, PerParameter<FloatArray>];
    expectCode(code, () => stepArrays(optimizer, params, grads));
    expect([...w!]).toEqual([1, 2]);
    expect(optimizer.stateDict().state).toEqual({});
  });

  it("what is no optimizer, or one that waits", () => {
    expectCode("BAD_ARGUMENT", () => stepArrays({} as Momentum, [], []));
    expectCode("UNSUPPORTED", () => stepArrays({ groups: [], step: async () => {} }, [], []));
  });

  it("arrays that overlap", () => {
    const [flat, optimizer] = [
      Float32Array.of(1, 2, 3),
      new Momentum(
        [
          [1, 2],
          [2, 3],
        ].map((x) => parameter(x)),
      ),
    ];
    expectCode("BAD_ARGUMENT", () => stepArrays(optimizer, [flat.subarray(1), flat.subarray(0, 2)], [grad, grad]));
    expect([...flat]).toEqual([1, 2, 3]);
  });

  it("parameters in 16 bits", () => {
    const optimizer = new Momentum([parameter([1, 2], { dtype: "bf16" })]);
    expectCode("BAD_DTYPE", () => stepArrays(optimizer, [Float32Array.of(1, 2)], [grad]));
  });

  it("a device that waits, and a compiled function", () => {
    const w = Float32Array.of(1, 2);
    const optimizer = new Momentum([parameter(w, { device: new FakeDevice({ async: true }) })]);
    expectCode("NOT_SYNC", () => stepArrays(optimizer, [w], [grad]));
    expectCode(
      "UNSUPPORTED",
      compile(() => stepArrays(one()[0], [w], [grad])),
    );
  });

  it("an option out of range, which leaves no gradient behind", () => {
    const [optimizer, arrays] = one();
    optimizer.groups[0]!.momentum = -1;
    expectCode("BAD_ARGUMENT", () => stepArrays(optimizer, arrays, { w: grad }));
    expect([...arrays.w!]).toEqual([1, 2]);
    expect(optimizer.groups[0]!.params[0]!.grad).toBe(null);
  });
});

it("need not copy in what the program has left alone since the last step", () => {
  const [w, same] = [Float32Array.of(1, 2), Float32Array.of(1, 2)];
  const [optimizer, other] = [w, same].map((x) => new Momentum([parameter(x)])) as [Momentum, Momentum];
  for (const unchanged of [false, true, true]) {
    stepArrays(optimizer, [w], [grad], { unchanged });
    stepArrays(other, [same], [grad]);
  }
  expect(w).toEqual(same);
  w.fill(100); // against its word
  stepArrays(optimizer, [w], [grad], { unchanged: true });
  stepArrays(other, [same], [grad]);
  expect(w).toEqual(same);
});

it("takes lists in the order of parameters, whatever these are called", () => {
  const step = (names: readonly string[]) => {
    const arrays = [Float32Array.of(1, 2), Float32Array.of(3, 4)];
    const optimizer = new Momentum(names.map((name, i) => [name, parameter(arrays[i]!)] as const));
    stepArrays(optimizer, arrays, [grad, null]);
    return arrays;
  };
  expect(step(["w", "b"])).toEqual(step(["0", "1"]));
});

it("takes other arrays from step to step where tensors have memory of their own", () => {
  const [optimizer, { w }] = one();
  const other = Float32Array.of(5, 6);
  stepArrays(optimizer, { w: w! }, { w: grad });
  const first = [...w!];
  stepArrays(optimizer, { w: other }, { w: grad });
  expect([...w!]).toEqual(first);
  expect(other[0]).toBeLessThan(5);
});

// Typed arrays of a program as parameters: the bits of stepping tensors on every device that is read without waiting, wherever the arrays lie.
import vm from "node:vm";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import {
  type BaseOptions,
  type Device,
  type FloatArray,
  init,
  type Optimizer,
  parameter,
  stepArrays,
  tensor,
  tidy,
} from "@opt/core";
import { Muon } from "@opt/muon";
import { NAdam } from "@opt/nadam";
import { SGD } from "@opt/sgd";
import { EXACT_DEVICES, eachDevice, expectCode } from "@opt/testkit";
import { expect, it } from "vitest";

const js = await init("js");

const named = (arrays: Readonly<Record<string, FloatArray>>, device: Device, shape?: number[]) =>
  Object.entries(arrays).map(
    ([name, values]) => [name, parameter(values, shape === undefined ? { device } : { device, shape })] as const,
  );
const weights = () => ({ w: Float32Array.of(1, -2, 3, 0.5), b: Float64Array.of(0.25, -1) });
const gradients = (t: number) => ({ w: Float32Array.of(t, -0.5, 0, 1e-3), b: Float64Array.of(1 / t, 2) });

/** What tensors become by the same steps. */
function byTensors(make: (params: ReturnType<typeof named>) => Optimizer<BaseOptions>, steps: number): FloatArray[] {
  const params = named(structuredClone(weights()), js);
  const optimizer = make(params);
  for (let t = 1; t <= steps; t++) {
    Object.values(gradients(t)).forEach((values, i) => {
      params[i]![1].grad = tensor(values, { device: js });
    });
    optimizer.step();
  }
  return params.map(([, param]) => param.dataSync());
}

type Make = (params: ReturnType<typeof named>) => Optimizer<BaseOptions>;
const OPTIMIZERS: [string, Make][] = [
  ["NAdam", (params) => new NAdam(params, { lr: 0.05, weightDecay: 0.1 }) as unknown as Optimizer<BaseOptions>],
  ["AdamW", (params) => new AdamW(params, { lr: 0.05, amsgrad: true }) as unknown as Optimizer<BaseOptions>],
  [
    "SGD",
    (params) => new SGD(params, { lr: 0.05, momentum: 0.9, clip: { norm: 0.5 } }) as unknown as Optimizer<BaseOptions>,
  ],
];

await eachDevice((device) => {
  it.each(OPTIMIZERS)("%s has the bits of tensors", (_, make) => {
    const arrays = weights();
    const optimizer = make(named(arrays, device));
    for (let t = 1; t <= 5; t++) stepArrays(optimizer, arrays, gradients(t));
    expect(Object.values(arrays)).toEqual(byTensors(make, 5));
  });

  it("takes parts of buffers, shared ones, and gradients that are parameters", () => {
    const flat = new Float32Array(new SharedArrayBuffer(40));
    flat.set([9, 1, 2, 3, 4, 9]);
    const arrays = [flat.subarray(1, 3), flat.subarray(3, 5)];
    const optimizer = new SGD(
      arrays.map((values) => parameter(values, { device })),
      { lr: 0.5 },
    );
    stepArrays(optimizer, arrays, arrays);
    stepArrays(optimizer, arrays, [arrays[1]!, flat.subarray(2, 4)]); // of which one is stepped before it is read
    expect([...flat.subarray(0, 6)]).toEqual([9, -0.25, 0, 1, 1.25, 9]);
  });

  it("takes arrays of another realm, empty ones and NaN", () => {
    const foreign = vm.runInNewContext("[Float32Array.of(1, 2), Float32Array.of(NaN, 1)]") as FloatArray[];
    const arrays = [foreign[0]!, new Float32Array(0)];
    const optimizer = new SGD([parameter([1, 2], { device }), parameter(arrays[1]!, { device })], { lr: 1 });
    stepArrays(optimizer, arrays, [foreign[1]!, new Float32Array(0)]);
    expect([...foreign[0]!]).toEqual([Number.NaN, 1]);
  });

  it("takes what the program wrote since, leaves out null, and holds no memory but state", () => {
    const arrays = weights();
    const optimizer = new SGD(named(arrays, device), { lr: 1 });
    const before = device.memory();
    arrays.w.fill(2);
    stepArrays(optimizer, arrays, { w: Float32Array.of(1, 1, 1, 1), b: null });
    expect([...arrays.w, ...arrays.b]).toEqual([1, 1, 1, 1, 0.25, -1]);
    expect(device.memory()).toEqual(before);
    tidy(() => stepArrays(optimizer, arrays, { w: null, b: Float64Array.of(1, 1) }));
    expect([...arrays.w, ...arrays.b]).toEqual([1, 1, 1, 1, -0.75, -2]);
  });

  it("resumes from a saved state", () => {
    const [arrays, others] = [weights(), weights()];
    const make = OPTIMIZERS[0]![1];
    const optimizer = make(named(arrays, device));
    for (let t = 1; t <= 3; t++) stepArrays(optimizer, arrays, gradients(t));
    others.w.set(arrays.w);
    others.b.set(arrays.b);
    const resumed = make(named(others, device));
    resumed.loadStateDict(optimizer.stateDict());
    for (let t = 4; t <= 5; t++) stepArrays(resumed, others, gradients(t));
    expect(Object.values(others)).toEqual(byTensors(make, 5));
  });

  it("steps matrices by shape", () => {
    const w = Float32Array.of(1, 2, 3, 4, 5, 6);
    const twin = parameter(
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
      { device },
    );
    twin.grad = tensor(
      [
        [1, 0, 0],
        [0, 1, 0],
      ],
      { device },
    );
    new Muon([twin]).step();
    stepArrays(new Muon(named({ w }, device, [2, 3])), { w }, { w: Float32Array.of(1, 0, 0, 0, 1, 0) });
    expect([...w]).toEqual([...twin.dataSync()]);
  });

  it.runIf(device.name === "cpu")("rejects another array than the one that a tensor lies in", () => {
      const [w, other, grad] = [Float32Array.of(1, 2), Float32Array.of(5, 6), Float32Array.of(1, 1)];
      const optimizer = new SGD([parameter(w, { device })]);
      expectCode("BAD_ARGUMENT", () => stepArrays(optimizer, [other], [grad]));
      stepArrays(optimizer, [new Float32Array(w.buffer)], [grad]); // another view of it is the same
      expect([...w, ...other]).not.toEqual([1, 2, 5, 6]);
      structuredClone(w.buffer, { transfer: [w.buffer] });
      expectCode("DISPOSED", () => stepArrays(optimizer, [other], [grad]));
    },
  );
}, EXACT_DEVICES);

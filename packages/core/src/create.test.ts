import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../testing/fake-backend";
import { compile } from "./compile/compile";
import {
  type CreateOptions,
  empty,
  emptyLike,
  full,
  ones,
  onesLike,
  parameter,
  rand,
  randn,
  tensor,
  tensorFromBytes,
  zeros,
  zerosLike,
} from "./create";
import { randint, randperm } from "./draws";
import type { ErrorCode } from "./errors/errors";
import { Generator } from "./random/generator";
import { arange, eye, linspace } from "./ranges";
import { hostBytes } from "./tensor/read";
import type { Tensor } from "./tensor/tensor";
import { type DType, isFloat } from "./values/dtype";
import type { TensorData } from "./values/literal";

const nan = Number.NaN;
const inf = Number.POSITIVE_INFINITY;

describe("tensor takes", () => {
  it.each<[string, TensorData, DType, number[], number[]]>([
    ["a number", 3.5, "f32", [], [3.5]],
    ["a boolean", true, "bool", [], [1]],
    [
      "nested arrays",
      [
        [1, 2, 3],
        [4, 5, 6],
      ],
      "f32",
      [2, 3],
      [1, 2, 3, 4, 5, 6],
    ],
    ["nested booleans", [[true], [false]], "bool", [2, 1], [1, 0]],
    ["numbers among booleans", [true, 2], "f32", [2], [1, 2]],
    ["nothing", [], "f32", [0], []],
    ["rows of nothing", [[], []], "f32", [2, 0], []],
    ["a Float32Array", Float32Array.of(1.5, nan), "f32", [2], [1.5, nan]],
    ["a Float64Array", Float64Array.of(0.1), "f64", [1], [0.1]],
    ["an Int32Array", Int32Array.of(-5, 7), "i32", [2], [-5, 7]],
    ["a Uint8Array", Uint8Array.of(255), "u8", [1], [255]],
    ["a Uint8ClampedArray", Uint8ClampedArray.of(1, 2), "u8", [2], [1, 2]],
    ["a part of an array", new Float32Array([0, 1, 2, 3]).subarray(1, 3), "f32", [2], [1, 2]],
  ])("%s", async (_, data, dtype, shape, expected) => {
    const made = tensor(data);
    expect([made.dtype, made.shape, made.size]).toEqual([dtype, shape, expected.length]);
    expect([...(await made.data())]).toEqual(expected);
  });

  it.each<[DType, number[], number[]]>([
    ["f32", [0.1, 1e39], [Math.fround(0.1), inf]],
    ["f64", [0.1, 1e39], [0.1, 1e39]],
    ["f16", [1 + 2 ** -11, 65520, nan], [1, inf, nan]],
    ["bf16", [1 + 2 ** -8, 3.4e38, nan], [1, inf, nan]],
    ["i32", [-1.9, 3e9, -3e9, nan], [-1, 2 ** 31 - 1, -(2 ** 31), 0]],
    ["u8", [254.9, 256, -3, nan], [254, 255, 0, 0]],
    ["bool", [0, -0, 0.1, nan], [0, 0, 1, 1]],
  ])("numbers as %s, rounded as a cast does, which saturates", async (dtype, values, expected) => {
    const fitting = values.filter(
      (_, i) => isFloat(dtype) || dtype === "bool" || Math.trunc(values[i]!) === expected[i],
    );
    const kept = expected.filter((_, i) => fitting.includes(values[i]!));
    expect([...(await tensor(fitting, { dtype }).data())]).toEqual(kept);
    expect([...(await tensor(Float64Array.from(values)).to(dtype).data())]).toEqual(expected);
  });

  it("a copy: the caller's array stays the caller's", async () => {
    const array = Float32Array.of(1, 2);
    const made = tensor(array, { shape: [2, 1] });
    array.fill(9);
    expect([...(await made.data())]).toEqual([1, 2]);
    (await made.data()).fill(7);
    expect([...made.dataSync()]).toEqual([1, 2]);
  });
});

const b = Symbol("bad") as never;

describe("errors", () => {
  it.each<[string, ErrorCode, () => unknown]>([
    ["ragged rows", "BAD_SHAPE", () => tensor([[1, 2], [3]])],
    ["a number beside a row", "BAD_SHAPE", () => tensor([[1], 2] as never)],
    ["a row beside a number", "BAD_ARGUMENT", () => tensor([1, [2]] as never)],
    ["text", "BAD_ARGUMENT", () => tensor("3" as never)],
    ["null", "BAD_ARGUMENT", () => tensor(null as never)],
    ["a hole", "BAD_ARGUMENT", () => tensor([1, undefined] as never)],
    [
      "a cycle",
      "BAD_SHAPE",
      () => {
        const a: unknown[] = [];
        a.push(a);
        tensor(a as never);
      },
    ],
    ["an Int8Array", "BAD_DTYPE", () => tensor(new Int8Array(1) as never)],
    ["a DataView", "BAD_DTYPE", () => tensor(new DataView(new ArrayBuffer(4)) as never)],
    ["a shape of another count", "BAD_SHAPE", () => tensor([1, 2, 3], { shape: [2, 2] })],
    ["a negative extent", "BAD_SHAPE", () => tensor([1], { shape: [-1] })],
    ["a fractional extent", "BAD_SHAPE", () => zeros([1.5])],
    ["an invalid shape", "BAD_SHAPE", () => ones(3 as never)],
    ["an unknown dtype", "BAD_DTYPE", () => tensor([1], { dtype: "float32" as never })],
    ["an unknown dtype of bytes", "BAD_DTYPE", () => tensorFromBytes(new Uint8Array(4), [1], { dtype: b })],
    ["a device that is not open", "UNKNOWN_DEVICE", () => tensor([1], { device: "cuda" })],
    ["bytes of another count", "BAD_SHAPE", () => tensorFromBytes(new Uint8Array(5), [1])],
    ["gradients of integers", "BAD_DTYPE", () => tensor([1], { dtype: "i32", requiresGrad: true })],
    ["a parameter of integers", "BAD_DTYPE", () => parameter([1], { dtype: "u8" })],
    ["random integers", "BAD_DTYPE", () => rand([1], { dtype: "i32" })],
    ["an invalid random shape", "BAD_SHAPE", () => randn([-1])],
    ["more than fits", "OUT_OF_MEMORY", () => zeros([2 ** 50])],
  ])("%s", (_, code, make) => expectCode(code, make));
});

describe.each<[DType, number]>([
  ["i32", 1e10],
  ["i32", 2 ** 31 - 0.5],
  ["i32", -(2 ** 31) - 0.9],
  ["i32", nan],
  ["i32", inf],
  ["u8", 256],
  ["u8", 255.9],
  ["u8", -1],
  ["u8", -0.5],
  ["u8", nan],
])("%s cannot hold %d:", (dtype, value) => {
  it.each<[string, () => unknown]>([
    ["tensor of a number", () => tensor(value, { dtype })],
    ["tensor of an array", () => tensor([[1, value]], { dtype })],
    ["tensor of a typed array", () => tensor(Float64Array.of(value), { dtype })],
    ["full", () => full([2], value, { dtype })],
    ["set", () => zeros([], { dtype }).set(value)],
    ["set with a typed array", () => zeros([1], { dtype }).set(Float64Array.of(value))],
  ])("%s", (_, make) => expectCode("BAD_ARGUMENT", make));
});

it("a shape is nobody's to change: results share it", () => {
  const shape = [2, 3];
  const x = zeros(shape);
  shape[0] = 5; // the caller's array stays the caller's
  expect([x.shape, Object.isFrozen(shape)]).toEqual([[2, 3], false]);
  const made = [
    x,
    x.add(1),
    x.add(zeros([3])),
    x.reshape([6]),
    x.sum(0),
    x.transpose(),
    x.slice(0, 1),
    parameter([1]),
    tensor([[1]], { shape: [1] }),
  ];
  expect(made.map((t) => Object.isFrozen(t.shape))).not.toContain(false);
  for (const key of ["shape", "dtype", "size"]) expect(() => Object.assign(x, { [key]: [9] })).toThrow(TypeError);
  expect([x.shape, x.dtype, x.size]).toEqual([[2, 3], "f32", 6]);
});

it("parameter makes a named leaf, from data, from a tensor, with a copy", async () => {
  const source = tensor([1, 2]);
  for (const made of [
    parameter([1, 2], { name: "w" }),
    parameter(source, { name: "w", dtype: "f64", shape: [2, 1] }),
  ]) {
    expect([made.requiresGrad, made.name, made.node]).toEqual([true, "w", null]);
    made.set(made.shape.length === 1 ? [5, 6] : [[5], [6]]);
  }
  expect([...source.dataSync()]).toEqual([1, 2]);
});

it("bytes go out and come back as stored", async () => {
  for (const dtype of ["f32", "f64", "f16", "bf16", "i32", "u8", "bool"] as const) {
    const source = tensor([1, 0, 3, 1.5], { dtype, shape: [2, 2] });
    const copy = tensorFromBytes(await source.bytes(), source.shape, { dtype });
    expect(copy.dataSync()).toAgreeWith(source.dataSync());
  }
});

it("what is written where a tensor lies is its elements, and counts as an overwrite", () => {
  const x = empty([2, 2], { dtype: "i32" });
  const before = x.storage.version;
  new Int32Array(hostBytes(x, "write")!.buffer, hostBytes(x, "read")!.byteOffset, 4).set([1, 2, 3, 4]);
  expect([...x.dataSync()]).toEqual([1, 2, 3, 4]);
  expect(hostBytes(x.reshape([4]), "read")!.buffer).toBe(hostBytes(x, "read")!.buffer);
  expect(x.storage.version - before).toBe(1);
  x.dispose();
  expect(() => hostBytes(x, "read")).toThrow(expect.objectContaining({ code: "DISPOSED" }));
});

it("random tensors are one stream in every dtype and shape", async () => {
  const stream = (dtype: DType, shape: number[]) => randn(shape, { dtype, generator: new Generator(3) }).data();
  const [single, double] = [await stream("f32", [7]), await stream("f64", [7, 1])];
  expect(Float64Array.from(single)).toAgreeWith(double);
  expect((await stream("f32", [4])).slice(0, 3)).toAgreeWith(single.slice(0, 3));
  const uniform = await rand([1000], { generator: new Generator(1) }).data();
  expect(Math.min(...uniform)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...uniform)).toBeLessThan(1);
});

it.each<[DType, number]>([
  ["bf16", 1 - 2 ** -8],
  ["f16", 1 - 2 ** -11],
])("rand in %s is below 1", (dtype, most) => {
  const [narrow, wide] = ([dtype, "f32"] as const).map((dtype) =>
    rand([20_000], { dtype, generator: new Generator(1) })
      .to("f32")
      .dataSync(),
  ) as [Float32Array, Float32Array];
  expect(Math.max(...narrow)).toBe(most);
  expect(narrow.every((x, i) => x <= wide[i]! && wide[i]! - x < 1 - most)).toBe(true);
});

it.each<[DType, number, number]>([
  ["f32", 0.1, Math.fround(0.1)],
  ["bf16", 1 + 2 ** -8, 1],
  ["i32", 2 ** 30 + 1, 2 ** 30 + 1],
  ["u8", 254.9, 254],
  ["bool", 2, 1],
])("full in %s", (dtype, value, stored) => {
  expect([...full([2], value, { dtype }).dataSync()]).toEqual([stored, stored]);
  expect([...zeros([1], { dtype }).dataSync(), ...ones([1], { dtype }).dataSync()]).toEqual([0, 1]);
});

it("arange is made again in each run of a compiled function", () => {
  const scaled = compile((x: Tensor) => x.mul(arange(3)), { check: "never" });
  scaled(tensor([1, 2, 3]));
  expect([...scaled(tensor([4, 5, 6])).dataSync()]).toEqual([0, 5, 12]);
});

it.each<[string, (options: CreateOptions) => Tensor]>([
  ["tensor", (options) => tensor([1, 2], options)],
  ["tensorFromBytes", (options) => tensorFromBytes(new Uint8Array(options.dtype === "f64" ? 16 : 8), [2], options)],
  ["empty", (options) => empty([2], options)],
  ["full", (options) => full([2], 3, options)],
  ["zeros", (options) => zeros([2], options)],
  ["ones", (options) => ones([2], options)],
  ["emptyLike", (options) => emptyLike(tensor([1, 2]), options)],
  ["zerosLike", (options) => zerosLike(tensor([1, 2]), options)],
  ["onesLike", (options) => onesLike(tensor([1, 2]), options)],
  ["rand", (options) => rand([2], options)],
  ["randn", (options) => randn([2], options)],
  ["randint", (options) => randint(9, [2], options)],
  ["randint from a number", (options) => randint(3, 9, [2], options)],
  ["randperm", (options) => randperm(2, options)],
  ["arange", (options) => arange(2, options)],
  ["arange from a number", (options) => arange(1, 3, options)],
  ["arange by steps", (options) => arange(0, 1, 0.5, options)],
  ["linspace", (options) => linspace(0, 1, 2, options)],
  ["eye", (options) => eye(2, options)],
  ["eye of two extents", (options) => eye(1, 2, options)],
])("%s has the dtype, the device and the gradient that it is given", (_, make) => {
  const device = new FakeDevice();
  const given: CreateOptions = { dtype: "f64", device, requiresGrad: true };
  const { dtype, requiresGrad, device: own } = make(given);
  expect([dtype, requiresGrad, own === device]).toEqual(["f64", true, true]);
  const plain = make({});
  expect([plain.requiresGrad, plain.device.name]).toEqual([false, "js"]);
});

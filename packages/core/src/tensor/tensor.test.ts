import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { parameter, tensor, zeros } from "../create";
import type { ErrorCode } from "../errors/errors";
import { max, maximum, min, minimum } from "../functions";
import { concat } from "../ops";
import type { Tensor } from "./tensor";

describe("views", () => {
  it("reshape, detach and a to() that changes nothing see the same memory", () => {
    const base = tensor([
      [1, 2, 3],
      [4, 5, 6],
    ]);
    const views = [base.reshape([3, 2]), base.reshape([2, 3]), base.detach(), base.to("f32"), base.to("js")];
    base.set([
      [1, 2, 3],
      [4, 5, 9],
    ]);
    expect(views.map((view) => view.dataSync().at(-1))).toEqual([9, 9, 9, 9, 9]);
    views[1]!.set(new Float32Array(6).fill(7));
    expect([...base.dataSync()]).toEqual([7, 7, 7, 7, 7, 7]);
  });

  it("slices along any axis, transposes, casts and clones are copies", () => {
    const base = tensor([
      [1, 2],
      [3, 4],
    ]);
    const copies = [base.transpose(), base.slice(0, 1, 1), base.slice(0, 1), base.clone(), base.to("f64")];
    base.set([
      [9, 9],
      [9, 9],
    ]);
    expect(copies.map((copy) => [...copy.dataSync()])).toEqual([
      [1, 3, 2, 4],
      [1, 3],
      [1, 2],
      [1, 2, 3, 4],
      [1, 2, 3, 4],
    ]);
  });

  it("keep the memory of a disposed base, and free it with the last view", () => {
    const device = new FakeDevice();
    const base = tensor([1, 2, 3, 4], { device });
    const view = base.reshape([2, 2]);
    base.dispose();
    expect([...view.dataSync()]).toEqual([1, 2, 3, 4]);
    expect(device.memory()).toEqual({ bytes: 16, tensors: 1 });
    view.dispose();
    expect(device.memory()).toEqual({ bytes: 0, tensors: 0 });
  });

  it.each<[string, number, number | undefined, number[]]>([
    ["to the end", 2, undefined, [2, 3]],
    ["from the end", -2, undefined, [2, 3]],
    ["clamped", -9, 9, [0, 1, 2, 3]],
    ["empty", 3, 1, []],
  ])("slice %s", (_, start, end, expected) => {
    expect([...tensor([0, 1, 2, 3]).slice(start, end).dataSync()]).toEqual(expected);
  });
});

describe("set", () => {
  it("takes what tensor takes, flat arrays too, and another tensor of any dtype", () => {
    const x = zeros([2, 2], { dtype: "bf16" });
    for (const data of [
      [
        [1, 2],
        [3, 4],
      ],
      Float64Array.of(1, 2, 3, 4),
      tensor(
        [
          [1, 2],
          [3, 4],
        ],
        { dtype: "i32" },
      ),
    ]) {
      const { version } = x.storage;
      x.set(zeros([2, 2]));
      x.set(data as number[][]);
      expect([...x.dataSync()]).toEqual([1, 2, 3, 4]);
      expect(x.storage.version).toBe(version + 2);
    }
    const scalar = zeros([]);
    scalar.set(5);
    expect(Number(scalar)).toBe(5);
  });

  it("takes tensors of other devices", () => {
    const x = zeros([2], { device: new FakeDevice() });
    x.set(tensor([1, 2], { dtype: "f64" }));
    expect([...x.dataSync()]).toEqual([1, 2]);
  });

  it.each<[string, ErrorCode, unknown]>([
    ["another count", "BAD_SHAPE", [1, 2, 3]],
    ["another nesting", "BAD_SHAPE", [1, 2, 3, 4]],
    ["a tensor of another shape", "BAD_SHAPE", zeros([4])],
    ["a typed array of another count", "BAD_SHAPE", new Float32Array(3)],
    ["text", "BAD_ARGUMENT", "1"],
  ])("rejects %s and changes nothing", (_, code, data) => {
    const x = tensor([
      [1, 2],
      [3, 4],
    ]);
    expectCode(code, () => x.set(data as never));
    expect([...x.dataSync()]).toEqual([1, 2, 3, 4]);
    expect(x.storage.version).toBe(0);
  });
});

describe("reading", () => {
  it("one element, as a number wherever one is wanted", async () => {
    const x = tensor([[2.5]]);
    expect([await x.item(), Number(x), (x as unknown as number) * 2]).toEqual([2.5, 2.5, 5]);
    expect((x as unknown as number) < 3).toBe(true);
    expect(`${x}`).toBe("Tensor f32 [1, 1] on js");
  });

  it("rejects one number of many", async () => {
    await expectCode("BAD_SHAPE", () => zeros([2]).item());
    expectCode("BAD_SHAPE", () => Number(zeros([2])));
  });

  it("at once is rejected where the device answers later", async () => {
    const x = tensor([1, 2], { device: new FakeDevice({ async: true }) });
    expect([...(await x.data())]).toEqual([1, 2]);
    expect(await x.slice(0, 1).item()).toBe(1);
    for (const read of [() => x.dataSync(), () => x.bytesSync(), () => Number(x.slice(0, 1))])
      expectCode("NOT_SYNC", read);
  });
});

describe("to", () => {
  it.each<[string, (x: Tensor) => Tensor]>([
    ["to the same dtype", (x) => x.to("f32")],
    ["to the same device", (x) => x.to(x.device)],
    ["reshape to the same", (x) => x.reshape([2])],
    ["a whole slice", (x) => x.slice(0)],
    ["permute that moves nothing", (x) => x.permute([0])],
    ["concat of one", (x) => concat([x])],
    ["sum over no axis", (x) => x.sum([])],
  ])("%s is a tensor of its own: disposing it leaves its source, and gradients flow", (_, run) => {
    const x = parameter([1, 2]);
    const result = run(x);
    result.sum().backward();
    result.dispose();
    expect([...x.dataSync(), ...x.grad!.dataSync()]).toEqual([1, 2, 1, 1]);
  });

  it("takes a device or a dtype, and drops none silently", () => {
    const both: (target?: string, other?: string) => Tensor = (...given) => tensor([1]).to(...(given as [string]));
    expectCode("BAD_ARGUMENT", () => both("js", "f64"));
    expectCode("BAD_ARGUMENT", () => both());
  });

  it("moves between devices, but not what requires a gradient", () => {
    const device = new FakeDevice();
    const moved = tensor([1, 2], { dtype: "f16" }).to(device);
    expect([moved.device, moved.dtype, ...moved.dataSync()]).toEqual([device, "f16", 1, 2]);
    expectCode("DEVICE_MISMATCH", () => parameter([1]).to(device));
    expectCode("UNKNOWN_DEVICE", () => tensor([1]).to("cuda"));
    expectCode("DEVICE_MISMATCH", () => tensor([1]).add(moved));
  });
});

describe("gradients assigned by the user", () => {
  it.each<[string, ErrorCode, unknown]>([
    ["another shape", "BAD_SHAPE", zeros([3])],
    ["another dtype", "BAD_DTYPE", zeros([2], { dtype: "f64" })],
    ["another device", "DEVICE_MISMATCH", zeros([2], { device: new FakeDevice() })],
    ["an array", "BAD_ARGUMENT", [1, 2]],
  ])("must not be of %s", (_, code, gradient) => {
    const x = parameter([1, 2]);
    expectCode(code, () => {
      x.grad = gradient as never;
    });
    expect(x.grad).toBeNull();
  });

  it("stay the user's: clearing does not free them", () => {
    const x = parameter([1, 2]);
    const gradient = tensor([3, 4]);
    x.grad = gradient;
    x.clearGradient();
    expect([x.grad, ...gradient.dataSync()]).toEqual([null, 3, 4]);
  });

  it("made by backward are freed with their tensor, and stay so when assigned to themselves", () => {
    const device = new FakeDevice();
    const x = parameter([1, 2], { device });
    x.mul(2).sum().backward(tensor(1, { device }));
    const { grad } = x;
    // biome-ignore lint/correctness/noSelfAssign: assigning a gradient to itself must not turn it into the user's.
    x.grad = x.grad;
    x.dispose();
    expect(grad!.isDisposed).toBe(true);
  });
});

it.each<[string, ErrorCode, () => unknown]>([
  ["a shape of another count", "BAD_SHAPE", () => zeros([2, 3]).reshape([4])],
  ["two extents to infer", "BAD_SHAPE", () => zeros([4]).reshape([-1, -1])],
  ["extents given one by one", "BAD_SHAPE", () => zeros([4]).reshape(2 as never)],
  ["an axis that is not there", "BAD_ARGUMENT", () => zeros([2]).sum(1)],
  ["an axis twice", "BAD_ARGUMENT", () => zeros([2, 2]).sum([0, -2])],
  ["a permutation that misses an axis", "BAD_ARGUMENT", () => zeros([2, 2]).permute([0])],
  ["a slice at half an element", "BAD_ARGUMENT", () => zeros([2]).slice(0.5)],
  ["the largest of nothing", "BAD_SHAPE", () => zeros([2, 0]).max(1)],
  ["shapes that do not broadcast", "BAD_SHAPE", () => zeros([2]).add(zeros([3]))],
  ["text as an operand", "BAD_ARGUMENT", () => zeros([2]).add("1" as never)],
  ["products of unequal inner extents", "BAD_SHAPE", () => zeros([2, 3]).matmul(zeros([2, 3]))],
  ["products of scalars", "BAD_SHAPE", () => zeros([]).matmul(zeros([2]))],
  [
    "a mark on the result of a computation",
    "BAD_ARGUMENT",
    () => {
      parameter([1]).mul(2).requiresGrad = false;
    },
  ],
  [
    "a mark on integers",
    "BAD_DTYPE",
    () => {
      zeros([1], { dtype: "i32" }).requiresGrad = true;
    },
  ],
])("rejects %s", (_, code, body) => expectCode(code, body));

it("maximum and minimum compare two operands; max and min reduce", () => {
  const x = tensor([1, 2, 3]);
  expect([...maximum(x, 2).dataSync(), ...minimum(x, 2).dataSync()]).toEqual([2, 2, 3, 1, 2, 2]);
  expect([max(x), min(x, 0), max(x, 0, true)].map((y) => y.tolist())).toEqual([3, 1, [3]]);
  for (const body of [
    () => maximum(x as never, [0] as never),
    () => (maximum as (x: Tensor) => Tensor)(x),
    () => x.max(x as never),
    () => max(x, x as never),
  ])
    expectCode("BAD_ARGUMENT", body);
});

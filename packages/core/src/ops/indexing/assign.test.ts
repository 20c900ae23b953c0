// What PyTorch's answers do not cover: the tape after a write in place, what throws, values of other kinds, compiled functions.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { grad } from "../../autograd";
import { compile } from "../../compile/compile";
import { ones, parameter, tensor, zeros } from "../../create";
import type { ErrorCode } from "../../errors/errors";
import { at, indexPut, reshape } from "../../functions";
import { span } from "../../tensor/span";
import { noGrad } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { versionOf } from "../../tensor/version-of";

const i32 = (...values: number[]) => tensor(values, { dtype: "i32" });
const x = () => zeros([2, 3]);
const bool = (...values: boolean[]) => tensor(values);

describe("assign", () => {
  it.each<[string, unknown, unknown, number[][]]>([
    [
      "a number to all",
      [],
      5,
      [
        [5, 5, 5],
        [5, 5, 5],
      ],
    ],
    [
      "a list to a row",
      [1],
      [1, 2, 3],
      [
        [0, 0, 0],
        [1, 2, 3],
      ],
    ],
    [
      "a typed array to a column",
      [null, -1],
      Float32Array.of(1, 2),
      [
        [0, 0, 1],
        [0, 0, 2],
      ],
    ],
    [
      "one index without a list",
      0,
      7,
      [
        [7, 7, 7],
        [0, 0, 0],
      ],
    ],
    [
      "a mask without a list",
      tensor([
        [true, false, true],
        [false, true, false],
      ]),
      4,
      [
        [4, 0, 4],
        [0, 4, 0],
      ],
    ],
    [
      "values of a mask",
      [
        tensor([
          [true, false, true],
          [false, true, false],
        ]),
      ],
      [1, 2, 3],
      [
        [1, 0, 2],
        [0, 3, 0],
      ],
    ],
    [
      "a mask of rows",
      [bool(false, true)],
      [[1, 2, 3]],
      [
        [0, 0, 0],
        [1, 2, 3],
      ],
    ],
    [
      "a mask of columns",
      [null, bool(true, false, true)],
      [
        [1, 2],
        [3, 4],
      ],
      [
        [1, 0, 2],
        [3, 0, 4],
      ],
    ],
    [
      "the last of equal positions",
      [0, i32(1, 1, 1)],
      [1, 2, 3],
      [
        [0, 3, 0],
        [0, 0, 0],
      ],
    ],
    [
      "every second",
      [
        [null, null, 2],
        [null, null, 2],
      ],
      1,
      [
        [1, 0, 1],
        [0, 0, 0],
      ],
    ],
    [
      "an empty range",
      [[2, 1]],
      1,
      [
        [0, 0, 0],
        [0, 0, 0],
      ],
    ],
    [
      "no positions",
      [i32()],
      zeros([0, 3]),
      [
        [0, 0, 0],
        [0, 0, 0],
      ],
    ],
    [
      "axes of 1 too many",
      [0],
      [[[1, 2, 3]]],
      [
        [1, 2, 3],
        [0, 0, 0],
      ],
    ],
  ])("writes %s", (_, index, value, expected) => {
    const y = x();
    const before = versionOf(y);
    y.assign(index as never, value as never);
    expect(y.tolist()).toEqual(expected);
    expect(versionOf(y)).toBeGreaterThan(before);
    expect(indexPut(x(), index as never, value as never).tolist()).toEqual(expected);
  });

  it("casts the value", () => {
    const y = zeros([2], { dtype: "i32" });
    y.assign([0], tensor([2.7]).reshape([]));
    y.assign([i32(1)], tensor([3.9]));
    expect(y.tolist()).toEqual([2, 3]);
  });

  it("keeps the sign of zero, NaN and large integers", () => {
    const y = ones([3]);
    y.assign([i32(0, 2)], [-0, Number.NaN]);
    expect(y.tolist()).toEqual([-0, 1, Number.NaN]);
    const whole = zeros([2], { dtype: "i32" });
    whole.assign([i32(1)], [2 ** 31 - 1]);
    expect(whole.tolist()).toEqual([0, 2 ** 31 - 1]);
  });

  it("takes values from the same memory, as they were before", () => {
    const y = tensor([1, 2, 3, 4, 5]);
    y.assign([[1, null]], span(y, 0, 4));
    expect(y.tolist()).toEqual([1, 1, 2, 3, 4]);
    y.assign([i32(0, 1, 2, 3, 4)], y.reshape([5]));
    expect(y.tolist()).toEqual([1, 1, 2, 3, 4]);
  });

  it.each<[ErrorCode, string, () => unknown]>([
    ["BAD_SHAPE", "values that do not broadcast", () => x().assign([0], [1, 2])],
    ["BAD_SHAPE", "too many axes", () => x().assign([0], ones([2, 3]))],
    ["BAD_SHAPE", "a mask of another extent", () => x().assign([bool(true)], 1)],
    [
      "BAD_SHAPE",
      "a value for each of more than the mask chooses",
      () => x().assign([bool(true, false)], ones([2, 3])),
    ],
    ["BAD_SHAPE", "positions that do not broadcast", () => x().assign([i32(0, 1), i32(0, 1, 2)], 1)],
    ["BAD_ARGUMENT", "a position beyond the end", () => x().assign([2], 1)],
    ["BAD_ARGUMENT", "a position before the start", () => x().assign([0, -4], 1)],
    ["BAD_ARGUMENT", "positions beyond the end", () => x().assign([i32(0, 2)], 1)],
    ["BAD_ARGUMENT", "positions before the start", () => at(x(), i32(-3))],
    ["BAD_ARGUMENT", "more indices than axes", () => x().assign([0, 0, 0], 1)],
    ["BAD_ARGUMENT", "a step backwards", () => at(x(), [null, null, -1])],
    ["BAD_ARGUMENT", "a fraction", () => at(x(), 0.5)],
    ["BAD_ARGUMENT", "numbers beyond the dtype", () => zeros([2], { dtype: "u8" }).assign([0], 300)],
    ["BAD_DTYPE", "floats as positions", () => at(x(), ones([1]))],
    ["BAD_DTYPE", "bytes as positions", () => at(x(), ones([2], { dtype: "u8" }))],
    ["BAD_ARGUMENT", "a leaf under a gradient", () => parameter([1, 2]).assign([0], 1)],
  ])("throws %s for %s, and writes nothing", (code, _, call) => expectCode(code, call));

  it("changes nothing where it throws", () => {
    const y = x();
    const before = [y.tolist(), versionOf(y)];
    const values = [tensor([1, 2]), ones([2, 2, 3])];
    const { bytes } = y.device.memory();
    for (const value of values) expectCode("BAD_SHAPE", () => y.assign([0], value));
    expect(y.device.memory().bytes).toBe(bytes);
    expect([y.tolist(), versionOf(y)]).toEqual(before);
  });

  it("reads no mask where the device answers later, and gives NaN for positions out of range", async () => {
    const device = new FakeDevice({ async: true });
    const y = zeros([3], { device });
    const mask = tensor([true, false, true]).to(device);
    y.assign(mask, tensor([1, 2], { device }));
    expect([...(await y.data())]).toEqual([1, 0, 2]);
    expectCode("NOT_SYNC", () => y.at(mask));
    const far = tensor([0, 3, -4], { device, dtype: "i32" });
    expect([...(await y.at(far).data())]).toEqual([1, Number.NaN, Number.NaN]);
    y.assign([far], tensor([7, 8, 9], { device }));
    expect([...(await y.data())]).toEqual([7, 0, 2]);
  });
});

describe("the tape after assign", () => {
  const w = () => parameter([1, 2, 3]);

  it("takes a plain tensor onto it by the value", () => {
    const [value, y] = [w(), zeros([2, 3])];
    y.assign([1], value.mul(2));
    expect(y.requiresGrad).toBe(true);
    y.mul(y).sum().backward();
    expect(value.grad!.tolist()).toEqual([8, 16, 24]); // (2w)^2
  });

  it("gives nothing to what was overwritten", () => {
    const value = w();
    const y = value.mul(3);
    y.assign([[0, 2]], 0);
    y.sum().backward();
    expect(value.grad!.tolist()).toEqual([0, 0, 3]);
  });

  it("keeps several writes in their order", () => {
    const value = w();
    const y = zeros([3]);
    for (let i = 0; i < 3; i++)
      y.assign([i], value.select(0, i).mul(i === 0 ? value.select(0, 0) : y.at(i - 1).clone()));
    y.sum().backward();
    // y = w0^2, w1 w0^2, w2 w1 w0^2
    expect([y.tolist(), value.grad!.tolist()]).toEqual([
      [1, 2, 6],
      [2 * (1 + 2 + 6), 1 + 3, 2],
    ]);
  });

  it("writes without a record inside of noGrad", () => {
    const value = w();
    const y = value.mul(3);
    noGrad(() => y.assign([0], 100));
    y.sum().backward();
    expect([y.tolist(), value.grad!.tolist()]).toEqual([
      [100, 6, 9],
      [3, 3, 3],
    ]);
    noGrad(() => value.assign([0], 5));
    expect(value.tolist()).toEqual([5, 2, 3]);
  });

  it("throws CHANGED for what an earlier op has saved", () => {
    const y = w().mul(1);
    const square = y.mul(y).sum();
    y.assign([0], 1);
    expectCode("CHANGED", () => square.backward());
  });

  it.each<[string, (view: Tensor) => unknown]>([
    ["in an op", (view) => view.mul(2)],
    ["in a reshape", (view) => view.reshape([3, 1])],
    ["in backward", (view) => view.backward(ones([3]))],
    ["in grad", (view) => grad(view.sum(), [w()])],
  ])("throws for other views of the memory, %s", (_, use) => {
    const value = w();
    for (const make of [() => value.mul(2), () => zeros([3])]) {
      const y = make();
      const view = reshape(y, [3]);
      y.assign([0], value.select(0, 0));
      expectCode("BAD_STATE", () => use(view));
      noGrad(() => expect(view.mul(1).tolist()).toEqual(y.tolist()));
      reshape(y, [3]).sum().backward(); // a view that is taken now is fine
      expect(value.grad!.tolist()).toEqual(make().requiresGrad ? [1, 2, 2] : [1, 0, 0]);
      value.grad = null;
    }
  });

  it("compiles as it runs", () => {
    const [cache, value] = [zeros([4, 2]), parameter([1, 2])];
    const [positions, mask] = [i32(1, 3), bool(true, false, false, true)];
    const body = (rows: Tensor, at: Tensor, mask: Tensor) => {
      const y = rows.mul(1);
      y.assign([at], value.mul(value));
      y.assign([mask, 0], 9);
      y.assign([[0, 2], 1], value);
      y.mul(y).sum().backward();
      cache.assign([at], y.detach().at(at));
      return y.detach();
    };
    const step = compile(body);
    const rows = tensor([
      [1, 2],
      [3, 4],
      [5, 6],
      [7, 8],
    ]);
    for (let call = 0; call < 5; call++) {
      positions.set(Int32Array.of(call % 2, 3 - (call % 2)));
      mask.set([call % 2 === 0, true, false, false]);
      const [seen, grads] = [step(rows, positions, mask).tolist(), value.grad!.tolist()];
      const kept = cache.tolist();
      value.grad = null;
      expect([seen, grads]).toEqual([body(rows, positions, mask).tolist(), value.grad!.tolist()]);
      expect(kept).toEqual(cache.tolist());
      value.grad = null;
    }
    step.dispose();
  });

  it("leaves no memory behind", () => {
    const value = w();
    const before = value.device.memory();
    const y = zeros([3]);
    for (let i = 0; i < 3; i++) {
      const one = value.select(0, i);
      y.assign([i], one);
      one.dispose();
    }
    y.dispose();
    expect(value.device.memory()).toEqual(before);
  });
});

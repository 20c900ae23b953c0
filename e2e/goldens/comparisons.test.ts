// What compares, chooses and ranks gives the same on every device: NaN, infinities, zeros of both signs, integers at their ends, every dtype.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { all, any, arange, clamp, cumsum, type Device, type DType, init, oneHot, round, type Tensor, tensor, topk, where } from "@opt/core";
import { eachDevice, useSoftwareVulkan } from "@opt/testkit";
import { describe, expect, it } from "vitest";

useSoftwareVulkan();

const { NaN: nan, POSITIVE_INFINITY: inf } = Number;
const FLOATS = [nan, inf, -inf, 0, -0, 1, -1, 2.5, 1, 0.1, -2.5];
const VALUES: Partial<Record<DType, number[]>> = {
  f32: FLOATS,
  f64: FLOATS,
  f16: FLOATS,
  bf16: FLOATS,
  i32: [2 ** 31 - 1, -(2 ** 31), 0, -1, 1, 2 ** 24, 2 ** 24 + 1, 7, 7, 3, -3],
  u8: [255, 0, 1, 7, 7, 200, 128, 127, 3, 2, 9],
  bool: [1, 0, 0, 1, 1, 0, 1, 0, 1, 1, 0],
};

/** Names by what they compute; all results as numbers. */
const CALLS: Readonly<Record<string, (x: Tensor, y: Tensor) => Tensor[]>> = {
  compared: (x, y) => [x.eq(y), x.ne(y), x.lt(y), x.le(y), x.gt(y), x.ge(y)],
  "compared with numbers": (x) => [x.eq(0.1), x.ne(1), x.lt(2.5), x.le(2.5), x.gt(-2.5), x.ge(0), x.eq(2 ** 24 + 1), x.lt(3e9)],
  clamped: (x) => [clamp(x, 0, 2), clamp(x, 1), clamp(x, null, 2)],
  chosen: (x, y) => [where(x.lt(y), x, y), where(x.gt(0), x, 1)],
  extremes: (x) => [x.min(), x.max(), x.argmin(), x.argmax()],
  ranked: (x) => [true, false].flatMap((largest) => Object.values(topk(x, 4, 0, { largest })) as Tensor[]),
  "summed up": (x) => [cumsum(x, 0)],
  rounded: (x) => (x.dtype === "bool" ? [] : [round(x), round(x.mul(2 ** 20 + 0.25))]),
  true: (x) => [any(x), all(x), any(x.reshape([1, 11]), 0, true), all(x.reshape([11, 1]), 1)],
};

async function numbersOf(device: Device, dtype: DType, call: (x: Tensor, y: Tensor) => Tensor[]): Promise<number[][]> {
  const values = VALUES[dtype]!;
  const [x, y] = [values, values.toReversed()].map((list) => tensor(list, { dtype, device })) as [Tensor, Tensor];
  return Promise.all(call(x, y).map(async (result) => [...(await result.data())]));
}

const js = await init("js");

await eachDevice((device) => {
  const dtypes = (Object.keys(VALUES) as DType[]).filter((dtype) => dtype !== "f64" || device.backend.dtypes.includes("f64"));
  describe.each(dtypes)("%s", (dtype) => {
    it.each(Object.entries(CALLS))("%s", async (_, call) => {
      expect(await numbersOf(device, dtype, call)).toEqual(await numbersOf(js, dtype, call));
    });
  });

  it("numbers and classes are made there", async () => {
    const classes = oneHot(arange(3, { device }), 4);
    expect([...(await classes.data())]).toEqual([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0]);
    expect([...(await arange(1, 2, 0.25, { device, dtype: "bf16" }).data())]).toEqual([1, 1.25, 1.5, 1.75]);
  });
});

import { describe, expect, it } from "vitest";
import { narrowFloatBits, narrowFloatValue } from "./narrow-floats";

describe("narrow floats", () => {
  it.each([
    [0, 0x0000],
    [-0, 0x8000],
    [1, 0x3c00],
    [-2, 0xc000],
    [65504, 0x7bff],
    [65519.99, 0x7bff],
    [65520, 0x7c00],
    [2 ** -14, 0x0400],
    [2 ** -24, 0x0001],
    [2 ** -25, 0x0000],
    [2 ** -25 * 1.0001, 0x0001],
    [1 + 2 ** -11, 0x3c00],
    [1 + 3 * 2 ** -11, 0x3c02],
    [Number.NEGATIVE_INFINITY, 0xfc00],
    [1 / 3, 0x3555],
  ])("f16 of %d", (x, bits) => {
    expect(narrowFloatBits(x, "f16")).toBe(bits);
  });

  it.each([
    [1, 0x3f80],
    [Math.PI, 0x4049],
    [1 + 2 ** -8, 0x3f80],
    [2 ** -133, 0x0001],
    [Number.MAX_VALUE, 0x7f80],
  ])("bf16 of %d", (x, bits) => {
    expect(narrowFloatBits(x, "bf16")).toBe(bits);
  });

  it.each(["f16", "bf16"] as const)("reads back every pattern of %s", (format) => {
    const differing = [];
    for (let bits = 0; bits < 0x10000; bits++) {
      const value = narrowFloatValue(bits, format);
      const back = narrowFloatBits(value, format);
      if (back !== bits && !Number.isNaN(value)) differing.push(bits);
    }
    expect(differing).toEqual([]);
  });

  it("agrees with float32's upper half on bfloat16 values", () => {
    const word = new DataView(new ArrayBuffer(4));
    for (let bits = 0; bits < 0x10000; bits++) {
      word.setUint32(0, bits * 0x10000);
      expect(narrowFloatValue(bits, "bf16")).toBe(word.getFloat32(0));
    }
  });
});

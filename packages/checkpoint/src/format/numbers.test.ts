import { expect, it } from "vitest";
import { bytesPerElement } from "./dtype";
import { numberReader, numberWriter } from "./numbers";

/** The bits of a number that was written. */
function writerOf(dtype: "F16" | "BF16" | "F8_E5M2" | "F8_E4M3") {
  const bytes = new Uint8Array(2);
  const write = numberWriter(dtype, bytes.subarray(0, bytesPerElement(dtype)), "test");
  return (value: number) => {
    write(0, value);
    return bytes[0]! + 256 * bytes[1]!;
  };
}

it.each(["F16", "BF16", "F8_E5M2", "F8_E4M3"] as const)(
  "%s: each number comes back as it was, what lies between becomes the nearest, of two the even",
  (dtype) => {
    const width = bytesPerElement(dtype);
    const all = Array.from({ length: 256 ** width }, (_, i) => i);
    const read = numberReader(dtype, new Uint8Array((width === 1 ? Uint8Array : Uint16Array).from(all).buffer), "test");
    const [bits, half] = [writerOf(dtype), all.length / 2];
    const wrong: [number, number][] = [];
    const check = (value: number, wanted: number) => void (bits(value) === wanted || wrong.push([value, wanted]));
    for (const i of all) {
      const [x, next] = [read(i), i + 1 < all.length ? read(i + 1) : Number.NaN];
      if (!Number.isNaN(x)) check(x, i);
      if (i % half === half - 1 || !Number.isFinite(x) || !Number.isFinite(next)) continue;
      const middle = (x + next) / 2;
      check(middle, i % 2 === 0 ? i : i + 1);
      check(middle * (1 - 1e-9), i);
      check(middle * (1 + 1e-9), i + 1);
    }
    expect(wrong).toEqual([]);
    expect(Number.isNaN(read(bits(Number.NaN)))).toBe(true);
  },
);

it.each([
  ["U8", 0, 255],
  ["I8", -128, 127],
  ["U16", 0, 65535],
  ["I16", -32768, 32767],
  ["U32", 0, 2 ** 32 - 1],
  ["I32", -(2 ** 31), 2 ** 31 - 1],
  ["U64", 0, 2 ** 64 - 2048],
  ["I64", -(2 ** 63), 2 ** 63 - 1024],
] as const)("%s: numbers are cut off, and end at %s and %s", (dtype, low, high) => {
  const bytes = new Uint8Array(8);
  const [read, write] = [numberReader(dtype, bytes, "test"), numberWriter(dtype, bytes, "test")];
  const given = [low, high, 1.9, Number.NaN, 2 * low - 1, 2 * high, Number.POSITIVE_INFINITY, -1.9];
  const back = given.map((value) => {
    write(0, value);
    return read(0);
  });
  expect(back).toEqual([low, high, 1, 0, low, high, high, low === 0 ? 0 : -1]);
});

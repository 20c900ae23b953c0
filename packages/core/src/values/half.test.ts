import "@opt/testkit";
import { describe, expect, it } from "vitest";
import { fromStored, narrow, toStored, widen } from "./half";

describe.each([
  { dtype: "f16", exponentBits: 5, fractionBits: 10 },
  { dtype: "bf16", exponentBits: 8, fractionBits: 7 },
] as const)("$dtype", ({ dtype, exponentBits, fractionBits }) => {
  const [read, store] = [fromStored(dtype), toStored(dtype)];
  const bias = 2 ** (exponentBits - 1) - 1;
  const infinity = (2 ** exponentBits - 1) << fractionBits;

  it("reads every pattern by its definition, and stores it again", () => {
    for (let bits = 0; bits < 65536; bits++) {
      const exponent = (bits >> fractionBits) & (2 ** exponentBits - 1);
      const fraction = (bits & (2 ** fractionBits - 1)) / 2 ** fractionBits;
      const magnitude = exponent === 0 ? fraction * 2 ** (1 - bias) : (1 + fraction) * 2 ** (exponent - bias);
      const sign = bits & 0x8000 ? -1 : 1;
      const special = fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
      const value = exponent === 2 ** exponentBits - 1 ? special : sign * magnitude;
      if (!Object.is(read(bits), value)) expect.fail(`${bits.toString(16)} reads ${read(bits)}, not ${value}`);
      if (Number.isNaN(value)) expect(read(store(value))).toBeNaN();
      else if (store(value) !== bits) expect.fail(`${value} is stored as ${store(value).toString(16)}`);
    }
  });

  it("stores what lies between two values as the nearer one, and the middle as the even one", () => {
    for (let bits = 0; bits < infinity - 1; bits++) {
      const [low, high] = [read(bits), read(bits + 1)];
      const middle = (low + high) / 2;
      const step = (high - low) / 64;
      for (const [value, expected] of [
        [middle, bits + (bits & 1)],
        [middle - step, bits],
        [middle + step, bits + 1],
      ]) {
        if (store(value!) !== expected || store(-value!) !== (expected! | 0x8000)) expect.fail(`${value} of ${bits}`);
      }
    }
  });

  it("overflows from half a step beyond the largest value", () => {
    const largest = read(infinity - 1);
    const tie = largest + (largest - read(infinity - 2)) / 2;
    expect(store(tie)).toBe(infinity);
    expect(store(tie * (1 - 2 ** -20))).toBe(infinity - 1);
  });

  it("arrays are converted element by element, into new memory", () => {
    const values = Float32Array.of(1, -0, 0.5);
    expect(widen(narrow(values, dtype), dtype)).toAgreeWith(values);
  });
});

it("float64 goes to f16 in one rounding", () => {
  expect(fromStored("f16")(toStored("f16")(1 + 2 ** -11 + 2 ** -40))).toBe(1 + 2 ** -10);
});

it("narrow always copies", () => {
  const values = Float32Array.of(1);
  expect(narrow(values, "f32")).not.toBe(values);
});

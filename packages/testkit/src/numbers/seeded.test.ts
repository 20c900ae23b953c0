import { describe, expect, it } from "vitest";
import { seededArray, seededBuffers, seededScalars } from "./seeded";
import { SPECIALS } from "./specials";
import "./matcher";

const rule = { buffers: ["param", "expAvgSq"], scalars: ["lr", "eps"] };

describe("seeded data", () => {
  it("is the same for the same seed and differs for another", () => {
    const array = (seed: number) => seededArray("f32", 100, { seed, specials: true });
    expect(array(7)).toAgreeWith(array(7));
    expect(array(8)).not.toAgreeWith(array(7));
  });

  it("is the beginning of longer data of its seed, and nobody else's array", () => {
    const short = seededArray("f64", 50, { seed: 12 });
    const long = seededArray("f64", 100, { seed: 12 });
    expect(long.subarray(0, 50)).toAgreeWith(short);
    expect(seededArray("f64", 70, { seed: 12 }).fill(0)).not.toAgreeWith(long.subarray(0, 70));
    expect(seededArray("f64", 100, { seed: 12 })).toAgreeWith(long);
  });

  it("is pinned: these very numbers in every run", () => {
    expect([...seededArray("i32", 6, { seed: 1 })]).toMatchInlineSnapshot(`
      [
        865,
        -1208,
        637,
        170,
        1,
        -34,
      ]
    `);
  });

  it.each(["f32", "f64", "f16", "bf16", "i32", "u8", "bool"] as const)("holds every special value of %s", (dtype) => {
    const array = [...seededArray(dtype, 5000, { seed: 3, specials: true })];
    for (const special of SPECIALS[dtype]) expect(array.some((x) => Object.is(x, special))).toBe(true);
  });

  it("is moderate without specials", () => {
    const array = seededArray("f64", 100_000, { seed: 5 });
    expect(Math.max(...array.slice(0, 50_000).map(Math.abs))).toBeLessThan(8);
    expect(array.filter((x) => x > 0).length / array.length).toBeCloseTo(0.5, 1);
  });

  it("keeps second moments non-negative but for the specials", () => {
    const [param, square] = seededBuffers(rule, { size: 1000, seed: 2 });
    expect(param!.some((x) => x < 0)).toBe(true);
    expect(square!.every((x) => x >= 0)).toBe(true);
    const [, salted] = seededBuffers(rule, { size: 1000, seed: 2, specials: true });
    expect(salted!.some((x) => x < 0)).toBe(true);
  });

  it("gives scalars that need rounding", () => {
    for (const scalar of seededScalars(rule, 1)) expect(Math.fround(scalar)).not.toBe(scalar);
  });
});

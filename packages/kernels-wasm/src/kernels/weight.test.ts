import { logSoftmaxGradRows } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { probeTarget } from "../target";
import { rows } from "./rows";
import { input, output, runKernel } from "./run-kernel";

/** exp(x) as sums weigh by it: of the gradient g - exp(y) sum(g) of log-softmax where y is x and 0, and g is 0 and -1. */
function weights(x: Float32Array, target: ReturnType<typeof probeTarget>): Float32Array {
  const pairs = (first: (i: number) => number, second: number) =>
    Float32Array.from({ length: 2 * x.length }, (_, i) => (i % 2 === 0 ? first(i / 2) : second));
  const launch = {
    inputs: [
      input("f32", new Float32Array(pairs((i) => x[i]!, 0))),
      input("f32", new Float32Array(pairs(() => 0, -1))),
    ],
    outputs: [output("f32", 2 * x.length)],
    scalars: [],
    rows: x.length,
    length: 2,
    ignoreIndex: 0,
  };
  const spec = { kind: "rows", program: logSoftmaxGradRows, dtype: "f32" } as const;
  return (runKernel(rows, spec, launch, { target }).outputs0 as Float32Array).filter((_, i) => i % 2 === 0);
}

const plain = { shared: false, relaxedSimd: false, fused: { f32: false, f64: false } };

describe.each([
  ["as this engine multiplies and adds", probeTarget(false)],
  ["with two roundings", plain],
])("weights %s", (_, target) => {
  it("are exp(x) to 2e-7 of it", () => {
    const x = Float32Array.from({ length: 50_001 }, (_, i) => -87 + (i * 158) / 50_000);
    const found = weights(x, target);
    const errors = Array.from(x, (value, i) => Math.abs(found[i]! / Math.exp(value) - 1));
    expect(Math.max(...errors)).toBeLessThan(2e-7);
  });

  it.each([-87.3, -87.4, -95, -103.5].map(Math.fround))("are subnormal where exp is, of %d", (x) => {
    const [found] = weights(Float32Array.of(x), target) as unknown as [number];
    expect(Math.abs(found - Math.exp(x))).toBeLessThanOrEqual(2 ** -150 + 2e-7 * Math.exp(x));
    expect(found).toBeGreaterThan(0);
  });

  it.each([-104.1, -150, -1e4, -1e30, -3e38, Number.NEGATIVE_INFINITY])("are 0 of %d", (x) =>
    expect([...weights(Float32Array.of(x), target)]).toEqual([0]),
  );

  it("are NaN of every NaN, whatever its bits", () => {
    const bits = Int32Array.of(0x7f800001, 0x7fffffff, -1, 0x7fc001ff);
    expect([...weights(new Float32Array(bits.buffer), target)]).toEqual(new Array(4).fill(Number.NaN));
  });
});

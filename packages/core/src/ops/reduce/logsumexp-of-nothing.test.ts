// What logsumexp promises where there is nothing: -Infinity of nothing and of -Infinity, and a gradient of 0 there, not NaN.
import fc from "fast-check";
import { expect, it } from "vitest";
import { grad, init, logsumexp, parameter } from "../../index";

const row = fc.oneof(
  fc.constant([Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]),
  fc.array(fc.constantFrom(-50, Number.NEGATIVE_INFINITY, -2, 0, 3), { minLength: 3, maxLength: 3 }),
);
const rows = fc.array(row, { minLength: 1, maxLength: 4 });
const dtypes = fc.constantFrom("f32", "f64");

await init("js");

it("gives each number its share, which is 0 where all are -Infinity, eager and by a graph", () => {
  fc.assert(
    fc.property(rows, dtypes, fc.boolean(), (numbers, dtype, createGraph) => {
      const x = parameter(numbers, { dtype });
      const [slope] = grad(logsumexp(x, 1).sum(), [x], { createGraph });
      const shares = numbers.map((row) => {
        const top = Math.max(...row);
        const parts = row.map((value) => (top === Number.NEGATIVE_INFINITY ? 0 : Math.exp(value - top)));
        const total = parts.reduce((a, b) => a + b, 0);
        return parts.map((part) => (total === 0 ? 0 : part / total));
      });
      const far = [...slope.dataSync()].map((value, i) => Math.abs(value - shares.flat()[i]!));
      expect(Math.max(...far)).toBeLessThan(1e-6);
    }),
    { numRuns: 30 },
  );
});

it("has a second gradient of 0 where all are -Infinity", () => {
  const x = parameter([[Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY]]);
  const [slope] = grad(logsumexp(x, 1).sum(), [x], { createGraph: true });
  slope.square().sum().backward();
  expect([...x.grad!.dataSync()]).toEqual([0, 0]);
});

it("is -Infinity of no elements, over any axes", () => {
  for (const [shape, axis] of [
    [[0], 0],
    [[2, 0], 1],
    [[0, 3], 0],
    [[2, 0], undefined],
  ] as const) {
    const x = parameter([], { shape });
    const result = logsumexp(x, axis);
    expect(new Set(result.dataSync())).toEqual(new Set([Number.NEGATIVE_INFINITY]));
    result.sum().backward();
    expect(x.grad!.shape).toEqual(shape);
  }
});

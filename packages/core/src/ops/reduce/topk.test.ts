import { describe, expect, it, vi } from "vitest";
import { grad } from "../../autograd";
import { compile } from "../../compile/compile";
import { parameter, tensor } from "../../create";
import type { DType } from "../../values/dtype";
import { topk } from "./topk";

/** Where the first k stand in order: NaN as the largest, of equals the first. */
function placesOf(row: readonly number[], k: number, largest: boolean): number[] {
  const rank = (x: number) => (Number.isNaN(x) ? 2e10 : Math.min(Math.max(x, -1e10), 1e10));
  const sign = largest ? -1 : 1;
  return [...row.keys()].sort((a, b) => sign * (rank(row[a]!) - rank(row[b]!)) || a - b).slice(0, k);
}

const EDGES = [0, Number.NaN, 3, -Infinity, 3, Infinity, -1, Number.NaN, -0, 3, -Infinity, Infinity];
const floats = Array.from({ length: 48 }, (_, i) => EDGES[(i * 7) % 12]! + (i % 5));
const integers = Array.from({ length: 48 }, (_, i) => ((i * 37) % 11) * 19);
const CASES: [DType, number[]][] = [
  ["f32", floats],
  ["f64", floats],
  ["bf16", floats],
  ["i32", integers.map((x) => x * 10_000_019)],
  ["u8", integers],
];

describe.each([5, 16, 17, 24])("the first %i of 24", (k) => {
  it.each(CASES)("in %s come in order, the first of equals first", (dtype, values) => {
    for (const largest of [true, false]) {
      const x = tensor(values, { dtype, shape: [2, 24] });
      const found = topk(x, k, -1, { largest });
      const expected = [values.slice(0, 24), values.slice(24)].map((row) => placesOf(row, k, largest));
      expect([found.values.dtype, found.values.shape, found.indices.shape]).toEqual([dtype, [2, k], [2, k]]);
      expect([...found.indices.dataSync()]).toEqual(expected.flat());
      const across = topk(x.transpose(), k, 0, { largest });
      expect([...across.indices.transpose().dataSync()]).toEqual(expected.flat());
      const chosen = expected.flatMap((places, row) => places.map((at) => values[24 * row + at]!));
      expect([...found.values.dataSync()]).toEqual(chosen);
      expect([...across.values.transpose().dataSync()]).toEqual(chosen);
    }
  });

  it("have a gradient, also compiled", () => {
    const values = Array.from({ length: 24 }, (_, i) => (i * 7) % 24);
    const slope = (x: ReturnType<typeof parameter>) => grad(topk(x, k).values.square().sum(), [x])[0]!;
    const expected = values.map((x) => (x >= 24 - k ? 2 * x : 0));
    const compiled = compile(slope);
    for (const run of [slope, compiled, compiled]) expect([...run(parameter(values)).dataSync()]).toEqual(expected);
    const others = values.map((x) => 23 - x);
    expect([...compiled(parameter(others)).dataSync()]).toEqual(others.map((x) => (x >= 24 - k ? 2 * x : 0)));
  });
});

it("of the smallest NaN comes last, behind Infinity", () => {
  const x = tensor([Number.NaN, Infinity, 1, Number.NaN, Infinity]);
  expect([...topk(x, 5, 0, { largest: false }).indices.dataSync()]).toEqual([2, 1, 4, 0, 3]);
});

it("takes no round for each of many", () => {
  const x = tensor(Float32Array.from({ length: 1000 }, (_, i) => (i * 7) % 1000));
  const launch = vi.spyOn(x.device, "launch");
  topk(x, 500);
  expect(launch.mock.calls.length).toBeLessThan(10);
  launch.mockRestore();
});

it("of a few of the smallest NaN comes behind Infinity, too", () => {
  const values = Array.from({ length: 40 }, (_, i) => (i === 30 ? 1 : i % 13 === 5 ? Infinity : Number.NaN));
  const { indices } = topk(tensor(values), 5, 0, { largest: false });
  expect([...indices.dataSync()]).toEqual([30, 5, 18, 31, 0]);
});

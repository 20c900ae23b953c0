// Initialisers of whole matrices: what they promise, by arithmetic.
import { cumsum, Generator, parameter, type Tensor, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Conv1d, Conv2d } from "../index";
import { truncNormal } from "./initializers";
import { dirac, eye, orthogonal, sparse } from "./structured";

const generator = () => new Generator(5);
const rowsOf = (x: Tensor) => x.tolist() as number[][];

describe("orthogonal", () => {
  it.each([
    [[4, 4], 1],
    [[3, 5], 2],
    [[5, 3], 0.5],
  ] as const)("of %j times %f has orthonormal vectors", (shape, gain) => {
    const weight = orthogonal(zeros(shape, { dtype: "f64" }), { gain, generator: generator() });
    const product =
      shape[0] > shape[1] ? weight.matmul(weight, { transposeA: true }) : weight.matmul(weight, { transposeB: true });
    for (const [i, row] of rowsOf(product).entries())
      for (const [k, value] of row.entries()) expect(value).toBeCloseTo(i === k ? gain ** 2 : 0, 12);
  });

  it("of a kernel takes its rows whole", () => {
    const kernel = orthogonal(zeros([2, 3, 2], { dtype: "f64" }), { generator: generator() });
    expect([...kernel.dataSync()]).toEqual([
      ...orthogonal(zeros([2, 6], { dtype: "f64" }), { generator: generator() }).dataSync(),
    ]);
  });

  it("is the Q of normal draws whose R has a positive diagonal", () => {
    const q = rowsOf(orthogonal(zeros([2, 2], { dtype: "f64" }), { generator: generator() }));
    const draws = new Generator(5);
    const [first, second] = draws.nextNormals();
    const length = Math.hypot(first, second);
    expect(q[0]![0]).toBeCloseTo(first / length, 12);
    expect(q[1]![0]).toBeCloseTo(second / length, 12);
  });
});

it("eye is the identity of a linear layer", () => {
  expect(
    rowsOf(
      eye(
        parameter([
          [5, 5, 5],
          [5, 5, 5],
        ]),
      ),
    ),
  ).toEqual([
    [1, 0, 0],
    [0, 1, 0],
  ]);
});

describe("dirac", () => {
  it("passes channels, in groups too", () => {
    const x = cumsum(zeros([1, 4, 6]).add(1), 2);
    for (const groups of [1, 2]) {
      const layer = new Conv1d(4, 4, 3, { padding: 1, groups, bias: false });
      dirac(layer.weight, { groups });
      expect(layer.forward(x).tolist()).toEqual(x.tolist());
    }
  });

  it("leaves further channels 0", () => {
    const layer = new Conv2d(1, 3, 2, { bias: false });
    expect(dirac(layer.weight).tolist()).toEqual([
      [
        [
          [0, 0],
          [0, 1],
        ],
      ],
      [
        [
          [0, 0],
          [0, 0],
        ],
      ],
      [
        [
          [0, 0],
          [0, 0],
        ],
      ],
    ]);
  });
});

it("sparse rounds its share of each column up", () =>
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 9 }), fc.double({ min: 0, max: 1, noNaN: true }), (rows, sparsity) => {
      const values = sparse(zeros([rows, 2]), { sparsity, generator: generator() })
        .transpose()
        .tolist();
      for (const column of values as number[][])
        expect(column.filter((value) => value === 0).length).toBe(Math.ceil(sparsity * rows));
    }),
  ));

it("sparse has as many zeros in each column as it says, and others of its deviation", () => {
  const rows = rowsOf(sparse(zeros([1000, 3]), { sparsity: 0.25, std: 2, generator: generator() }));
  for (const column of [0, 1, 2]) {
    const values = rows.map((row) => row[column]!);
    expect(values.filter((value) => value === 0)).toHaveLength(250);
    expect(Math.sqrt(values.reduce((sum, value) => sum + value ** 2, 0) / 750)).toBeCloseTo(2, 0);
  }
});

it("truncNormal takes its mean and bounds from the options", () => {
  const options = { mean: 3, std: 0.5, a: 2.5, b: 3.25, generator: generator() };
  const values = [...truncNormal(zeros([500]), options).dataSync()];
  expect(Math.min(...values)).toBeGreaterThanOrEqual(2.5);
  expect(Math.max(...values)).toBeLessThanOrEqual(3.25);
  expect(values.reduce((a, b) => a + b) / 500).toBeCloseTo(2.92, 1);
});

it.each<["BAD_ARGUMENT" | "BAD_SHAPE", string, () => unknown]>([
  ["BAD_SHAPE", "orthogonal of a vector", () => orthogonal(zeros([3]))],
  ["BAD_ARGUMENT", "an infinite gain", () => orthogonal(zeros([3, 3]), { gain: Number.POSITIVE_INFINITY })],
  ["BAD_SHAPE", "eye of a kernel", () => eye(zeros([3, 3, 3]))],
  ["BAD_SHAPE", "dirac of a matrix", () => dirac(zeros([3, 3]))],
  ["BAD_ARGUMENT", "groups that do not divide", () => dirac(zeros([3, 3, 3]), { groups: 2 })],
  ["BAD_SHAPE", "sparse of a vector", () => sparse(zeros([3]), { sparsity: 0.5 })],
  ["BAD_ARGUMENT", "a share above 1", () => sparse(zeros([3, 3]), { sparsity: 2 })],
])("rejects with %s %s", (code, _, body) => expectCode(code, body));

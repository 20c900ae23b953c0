/** Factors of matrices: what they reject, gradients that do not exist, compiled functions, devices without the host's memory. */
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { compile } from "../../compile/compile";
import { parameter, randn, tensor, zeros } from "../../create";
import {
  eigh,
  eigvalsh,
  fft,
  lstsq,
  lu,
  matrixExp,
  matrixNorm,
  matrixPower,
  pinv,
  qr,
  svd,
  svdvals,
  triangularSolve,
} from "../../functions";
import { Generator } from "../../random/generator";
import { eye } from "../../ranges";
import { autocast } from "../../tensor/autocast";
import type { Tensor } from "../../tensor/tensor";

const matrix = tensor([
  [4, 1],
  [1, 3],
]);
const numbers = (x: Tensor) => [...x.dataSync()];
const error = (x: Tensor) => matrixNorm(x, Number.POSITIVE_INFINITY).dataSync()[0]!;

describe("what has no factors", () => {
  it.each<[string, (x: Tensor) => unknown]>([
    ["eigh", (x) => eigh(x)],
    ["eigvalsh", (x) => eigvalsh(x)],
    ["svd", (x) => svd(x)],
    ["svdvals", (x) => svdvals(x)],
    ["pinv", (x) => pinv(x)],
    ["lstsq", (x) => lstsq(x, x)],
  ])("%s rejects NaN and infinity, in each run of a compiled function too", (_, run) => {
    for (const value of [Number.NaN, Number.POSITIVE_INFINITY]) {
      const x = tensor([
        [1, value],
        [value, 1],
      ]);
      expectCode("BAD_ARGUMENT", () => run(x));
      const compiled = compile((x: Tensor) => Object.values({ ...(run(x) as object) }) as Tensor[], { check: "never" });
      for (let i = 0; i < 3; i++) compiled(matrix);
      expectCode("BAD_ARGUMENT", () => compiled(x));
    }
  });

  it("the triangle that eigh does not read may have any numbers", () => {
    const x = tensor([
      [2, Number.NaN],
      [0, 3],
    ]);
    expect(numbers(eigvalsh(x))).toEqual([2, 3]);
    expect(numbers(eigvalsh(x.transpose(), { upper: true }))).toEqual([2, 3]);
    expectCode("BAD_ARGUMENT", () => eigvalsh(x, { upper: true }));
  });

  it("options, shapes and dtypes are checked", () => {
    expectCode("BAD_ARGUMENT", () => qr(matrix, { mode: "full" as "r" }));
    expectCode("BAD_ARGUMENT", () => pinv(matrix, { rtol: -1 }));
    expectCode("BAD_ARGUMENT", () => lstsq(matrix, matrix, { rcond: -1 }));
    expectCode("BAD_ARGUMENT", () => matrixNorm(matrix, 3));
    expectCode("BAD_ARGUMENT", () => matrixNorm(matrix, "fro", [0, -2]));
    expectCode("BAD_ARGUMENT", () => matrixPower(matrix, 0.5));
    expectCode("BAD_SHAPE", () => matrixExp(zeros([2, 3])));
    expectCode("BAD_SHAPE", () => matrixPower(zeros([2, 3]), 1));
    expectCode("BAD_SHAPE", () => matrixNorm(tensor([1])));
    expectCode("BAD_SHAPE", () => lstsq(matrix, zeros([3, 1])));
    expectCode("BAD_SHAPE", () => triangularSolve(matrix, zeros([3, 1])));
    expectCode("BAD_SHAPE", () => triangularSolve(matrix, tensor([1, 2])));
    for (const run of [qr, svd, svdvals, lu, pinv]) {
      expectCode("BAD_SHAPE", () => run(tensor([1])));
      expectCode("BAD_DTYPE", () => run(tensor([[1]], { dtype: "bf16" })));
    }
    expectCode("BAD_DTYPE", () => matrixNorm(tensor([[1]], { dtype: "i32" })));
    expectCode("BAD_DTYPE", () => matrixExp(tensor([[1]], { dtype: "i32" })));
  });
});

it("tolerances say which singular values count", () => {
  const x = tensor([
    [4, 0],
    [0, 1],
  ]);
  expect(numbers(pinv(x, { rtol: 0.3 }))).toEqual([0.25, 0, 0, 0]);
  expect(numbers(pinv(x, { atol: 1 }))).toEqual([0.25, 0, 0, 0]);
  expect(numbers(pinv(x, { atol: 0.5 }))).toEqual([0.25, 0, 0, 1]);
  const [least, small] = [2 ** -30, tensor([1, 0, 0, 2 ** -30], { shape: [2, 2] })];
  for (const options of [{}, { atol: 0 }]) expect(numbers(pinv(small, options))).toEqual([1, 0, 0, 0]);
  // Each tolerance of one's own is in the place of the default one.
  for (const options of [{ atol: least / 2 }, { rtol: 0 }])
    expect(numbers(pinv(small, options))).toEqual([1, 0, 0, 1 / least]);
  const { solution, rank } = lstsq(x, tensor([4, 1]), { rcond: 0.5 });
  expect([numbers(solution), numbers(rank)]).toEqual([[1, 0], [1]]);
  const { residuals } = lstsq(tensor([[1], [1]]), tensor([[1], [3]]));
  expect(numbers(residuals)).toEqual([2]);
});

it("modes of qr without a gradient say so in backward", () => {
  const x = parameter(randn([3, 2], { generator: new Generator(1) }));
  expectCode("UNSUPPORTED", () => qr(x, { mode: "complete" }).q.sum().backward());
  expectCode("UNSUPPORTED", () => qr(x, { mode: "r" }).r.sum().backward());
});

it("equal singular values leave the gradient of values finite, also beside unused vectors", () => {
  const x = parameter(eye(3));
  svd(x).s.sum().backward();
  expect(numbers(x.grad!)).toEqual(numbers(eye(3)));
  const y = parameter(eye(3));
  eigh(y).eigenvalues.sum().backward();
  expect(numbers(y.grad!)).toEqual(numbers(eye(3)));
});

it("eigh ends where parts of the matrix are smaller than the rest by hundreds of digits", () => {
  const diagonal = [8e-8, 3.5e-6, 6e-14, 0, 0, 0];
  const beside = [3e-7, 2e-13, 4e-14, 1e-240, 2e-256];
  const rows = diagonal.map((_, i) =>
    diagonal.map((value, k) => (i === k ? value : Math.abs(i - k) === 1 ? beside[Math.min(i, k)]! : 0)),
  );
  const { eigenvalues } = eigh(tensor(rows, { dtype: "f64" }));
  // NumPy's.
  const expected = [-2.000000336842108e-14, 0, 0, 7.999998652630941e-14, 5.388364445237123e-8, 3.526116355547646e-6];
  expect(numbers(eigenvalues)).toAgreeWith(expected, { absolute: 1e-21, relative: 0 });
});

it.each([
  [100, 60],
  [60, 100],
  [80, 80],
  [33, 33],
])("factors of [%i, %i] multiply to the matrix, by orthogonal columns", (m, n) => {
  const x = randn([2, m, n], { generator: new Generator(3) });
  for (const mode of ["reduced", "complete"] as const) {
    const { q, r } = qr(x, { mode });
    const columns = q.shape.at(-1)!;
    expect(Math.max(...numbers(q.matmul(r).sub(x).abs()))).toBeLessThan(3e-5);
    expect(Math.max(...numbers(q.matmul(q, { transposeA: true }).sub(eye(columns)).abs()))).toBeLessThan(1e-5);
    expect(Math.max(...numbers(r.slice(1, columns, -2).abs().slice(0, 1, -1)))).toBe(0);
  }
});

it("large matrices are their factors' products", () => {
  const x = randn([90, 70], { dtype: "f64", generator: new Generator(4) });
  const { u, s, vh } = svd(x, { fullMatrices: false });
  expect(error(u.mul(s).matmul(vh).sub(x))).toBeLessThan(1e-11);
  const full = svd(x).u;
  expect(error(full.matmul(full, { transposeB: true }).sub(eye(90, { dtype: "f64" })))).toBeLessThan(1e-11);
  const { p, l, u: upper } = lu(x);
  expect(error(p.matmul(l).matmul(upper).sub(x))).toBeLessThan(1e-11);
});

it("a compiled function computes factors of each run's numbers", () => {
  const compiled = compile((x: Tensor) => svdvals(x).sum(), { check: "never" });
  for (const scale of [1, 2, 3, 4]) expect(numbers(compiled(eye(2).mul(scale)))).toEqual([2 * scale]);
});

it("keeps float32 within autocast, and takes 16 bits as float32", () => {
  const half = matrix.to("bf16");
  for (const x of [matrix, half]) expect(autocast("bf16", () => svdvals(x)).dtype).toBe("f32");
  expect(numbers(autocast("bf16", () => eigvalsh(half)))).toEqual(numbers(eigvalsh(matrix)));
});

it("throw on devices where the host cannot wait for them", () => {
  const device = new FakeDevice({ async: true });
  const x = tensor([[3]], { device });
  for (const run of [svdvals, qr, eigh, lu, pinv, matrixExp]) expectCode("UNSUPPORTED", () => run(x));
  expectCode("UNSUPPORTED", () => fft(x));
});

describe.each([[[0, 0]], [[0, 2]], [[2, 0]], [[2, 0, 3]], [[2, 3, 0]], [[0, 2, 2]]])(
  "of shape %j, matrices",
  (shape) => {
    const x = zeros(shape, { dtype: "f64" });
    const batch = shape.slice(0, -2);
    const isOfNone = batch.includes(0);

    it.each(["fro", "nuc", 1, -1, 2, -2, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY] as const)(
      "have a norm %s of 0",
      (order) => {
        for (const keepDim of [false, true]) {
          const found = matrixNorm(x, order, [-2, -1], keepDim);
          expect([found.shape, numbers(found)]).toEqual([
            [...batch, ...(keepDim ? [1, 1] : [])],
            isOfNone ? [] : batch.length > 0 ? [0, 0] : [0],
          ]);
        }
      },
    );

    it("are the products of their factors", () => {
      const parts = (["reduced", "complete"] as const).map((mode) => qr(x, { mode })).map(({ q, r }) => q.matmul(r));
      const { p, l, u } = lu(x);
      const { u: left, s, vh } = svd(x, { fullMatrices: false });
      for (const product of [
        ...parts,
        p.matmul(l).matmul(u),
        left.mul(s.unsqueeze(-2)).matmul(vh),
        pinv(x).transpose(),
      ])
        expect(product.shape).toEqual(shape);
      const full = svd(x);
      expect([full.u.shape.at(-1), full.vh.shape.at(-2)]).toEqual(shape.slice(-2));
    });
  },
);

// What solves an equation fulfils it, in every form of the arguments.
import { Random } from "@opt/testkit";
import fc from "fast-check";
import { expect, it } from "vitest";
import * as F from "../../index";

await F.init("js");

const f64 = { dtype: "f64" } as const;
const extents = {
  n: fc.integer({ min: 1, max: 4 }),
  k: fc.integer({ min: 1, max: 3 }),
  batch: fc.constantFrom([], [2], [2, 3]),
};
const forms = fc.record({
  ...extents,
  left: fc.boolean(),
  upper: fc.boolean(),
  unitriangular: fc.boolean(),
  isVector: fc.boolean(),
  seed: fc.nat(99),
});

/** Numbers from -1 to 1, and what makes a matrix of them regular. */
function drawn(random: Random, shape: readonly number[], diagonal = 0): F.Tensor {
  const x = F.tensor(
    Float64Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => 2 * random.uniform() - 1),
    { shape, ...f64 },
  );
  return diagonal === 0 ? x : x.add(F.eye(shape.at(-1)!, shape.at(-1)!, f64).mul(diagonal));
}

const CLOSE = { absolute: 1e-10, relative: 1e-10 };

it("solve and triangularSolve: A x = b, or x A = b", () =>
  fc.assert(
    fc.property(forms, ({ n, k, batch, left, upper, unitriangular, isVector, seed }) => {
      const random = new Random(seed);
      const a = drawn(random, [...batch, n, n], 4);
      const b = drawn(random, isVector ? (left ? [...batch, n] : [n]) : [...batch, ...(left ? [n, k] : [k, n])]);
      const product = (matrix: F.Tensor, x: F.Tensor) => {
        if (!isVector) return left ? matrix.matmul(x) : x.matmul(matrix);
        return left ? matrix.matmul(x.unsqueeze(-1)).squeeze(-1) : x.unsqueeze(-2).matmul(matrix).squeeze(-2);
      };
      const expectSolved = (matrix: F.Tensor, x: F.Tensor) =>
        expect(product(matrix, x).dataSync()).toAgreeWith(b.expand(product(matrix, x).shape).dataSync(), CLOSE);
      expectSolved(a, F.solve(a, b, { left }));
      if (isVector) return;
      const part = upper ? F.triu(a) : F.tril(a);
      const unit = F.eye(n, n, f64);
      const matrix = unitriangular ? F.where(unit.ne(0), 1, part) : part;
      expectSolved(matrix, F.triangularSolve(a, b, { left, upper, unitriangular }));
    }),
    { numRuns: 30 },
  ));

it("choleskySolve, inverse, pinv, lstsq and matrixPower", () =>
  fc.assert(
    fc.property(forms, ({ n, k, batch, upper, seed }) => {
      const random = new Random(seed);
      const a = drawn(random, [...batch, n, n], 4);
      const b = drawn(random, [...batch, n, k]);
      const definite = a.matmul(a, { transposeB: true });
      const unit = F.eye(n, n, f64).expand(a.shape);
      const expectEqual = (x: F.Tensor, y: F.Tensor) => expect(x.dataSync()).toAgreeWith(y.dataSync(), CLOSE);
      expectEqual(definite.matmul(F.choleskySolve(b, F.cholesky(definite, { upper }), { upper })), b);
      expectEqual(a.matmul(F.inverse(a)), unit);
      expectEqual(F.pinv(a).matmul(a), unit);
      expectEqual(a.matmul(F.lstsq(a, b).solution), b);
      expectEqual(F.matrixPower(a, -3).matmul(F.matrixPower(a, 3)), unit);
    }),
    { numRuns: 30 },
  ));

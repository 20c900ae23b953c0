/** Rare arguments of linear algebra: upper triangles, unknowns on the left, vectors, batches that broadcast, no rows, many rows. */
import type { CallInput } from "@opt/testkit";
import * as F from "../../src/functions";
import { eye } from "../../src/ranges";
import type { Tensor } from "../../src/tensor/tensor";
import { sizeOf } from "../../src/values/shape";
import { bool, type Draw, type Row } from "../draw";

const extent = (draw: Draw) => draw.random.pick([0, 1, 2, 3, 4, 7, 19]);
const batchOf = (draw: Draw) => draw.random.pick([[], [], [2], [1], [2, 1], [0]]);
/** A batch that broadcasts with another. */
const part = (draw: Draw, batch: readonly number[]) =>
  draw.flip() ? batch.slice(draw.int(batch.length + 1)) : batch.map((each) => (draw.flip() ? each : 1));

/** Far from singular: 4 or -4 in one place of each row. */
function regular(draw: Draw, batch: readonly number[], n: number): CallInput {
  const made = draw.numbers([...batch, n, n], { low: -1, high: 1 });
  const shift = draw.int(n + 1);
  const values = Array.from({ length: sizeOf(made.shape) }, (_, i) => {
    const [row, column] = [Math.floor(i / n) % n, i % n];
    return made.values[i]! + (column === (row + shift) % n ? (draw.flip() ? 4 : -4) * Math.sqrt(n) : 0);
  });
  return { ...made, values };
}

/** A triangle with numbers from 1 on its diagonal. */
function triangle(draw: Draw, batch: readonly number[], n: number): CallInput {
  const made = draw.numbers([...batch, n, n], { low: -1, high: 1 });
  const values = Array.from(made.values, (value, i) =>
    Math.floor(i / n) % n === i % n ? 1.5 + Math.abs(value) : value,
  );
  return { ...made, values };
}

const definite = "(a @ a.mT + torch.eye(a.shape[-1], dtype=a.dtype))";
const positive = (a: Tensor) =>
  a.matmul(a, { transposeB: true }).add(eye(a.shape.at(-1)!, { dtype: a.dtype as "f64", device: a.device }));

const solve =
  (left: boolean): Row =>
  (draw) => {
    const n = extent(draw);
    const batch = batchOf(draw);
    const k = draw.int(4);
    // PyTorch takes a vector where b has one axis, or all of a's axes but one and its batch.
    const isVector = left && batch.length === 0 && draw.flip();
    // A b that looks like vectors is rejected there from the right.
    const looksLikeVectors = !left && batch.length > 0;
    const b = isVector
      ? [n]
      : left
        ? [...part(draw, batch), n, k]
        : [...(looksLikeVectors ? batch : part(draw, batch)), k, n];
    return {
      inputs: [regular(draw, batch, n), draw.numbers(b)],
      code: `torch.linalg.solve(a, b, left=${bool(left)})`,
      run: (a, b) => F.solve(a!, b!, { left }),
      second: draw.dtype === "f64",
    };
  };

const square =
  (code: string, run: (a: Tensor) => Tensor | readonly Tensor[]): Row =>
  (draw) => ({
    inputs: [regular(draw, batchOf(draw), extent(draw))],
    code,
    run: (a) => run(a!),
    second: draw.dtype === "f64",
  });

export const LINEAR_ALGEBRA: Readonly<Record<string, Row>> = {
  cholesky: (draw) => {
    const upper = draw.flip();
    return {
      inputs: [draw.numbers([...batchOf(draw), ...Array(2).fill(extent(draw))])],
      code: `torch.linalg.cholesky(${definite}, upper=${bool(upper)})`,
      run: (a) => F.cholesky(positive(a!), { upper }),
      second: draw.dtype === "f64",
    };
  },
  choleskySolve: (draw) => {
    const [n, batch, upper] = [extent(draw), batchOf(draw), draw.flip()];
    return {
      inputs: [triangle(draw, batch, n), draw.numbers([...part(draw, batch), n, draw.int(4)])],
      code: upper ? "torch.cholesky_solve(b, a.triu(), upper=True)" : "torch.cholesky_solve(b, a.tril())",
      run: (a, b) => F.choleskySolve(b!, upper ? F.triu(a!) : F.tril(a!), { upper }),
      second: draw.dtype === "f64",
    };
  },
  "solve from the left": solve(true),
  "solve from the right": solve(false),
  inverse: square("torch.linalg.inv(a)", F.inverse),
  slogdet: square("tuple(torch.linalg.slogdet(a))", (a) => {
    const { sign, logabsdet } = F.slogdet(a);
    return [sign, logabsdet];
  }),
  // Of 1 x 1 and of no matrices PyTorch has no second gradient, not even zeros.
  det: (draw) => {
    const drawn = square("torch.linalg.det(a)", F.det)(draw);
    const { shape } = drawn.inputs[0]!;
    return { ...drawn, second: drawn.second === true && shape.at(-1)! > 1 && !shape.includes(0) };
  },
  logdet: (draw) => {
    const { inputs } = LINEAR_ALGEBRA.cholesky!(draw);
    return {
      inputs,
      code: `torch.logdet(${definite})`,
      run: (a) => F.logdet(positive(a!)),
      second: draw.dtype === "f64",
    };
  },
};

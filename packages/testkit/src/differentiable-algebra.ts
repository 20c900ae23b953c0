/** Differentiable ops of arithmetic: elementwise functions, products, scans, contractions and linear algebra. */
import * as F from "@opt/core";
import type { OpCase } from "./op-case";

export const DIFFERENTIABLE_ALGEBRA: readonly OpCase[] = [
  { name: "log1p", shapes: [[2, 3]], domain: "positive", run: (x) => F.log1p(x!) },
  { name: "expm1", shapes: [[2, 3]], run: (x) => F.expm1(x!) },
  { name: "rsqrt", shapes: [[2, 3]], domain: "positive", run: (x) => F.rsqrt(x!) },
  { name: "square", shapes: [[2, 3]], run: (x) => F.square(x!) },
  { name: "lerp", shapes: [[2, 3], [3], [2, 1]], run: (a, b, weight) => F.lerp(a!, b!, weight!) },
  { name: "lerp by a number", shapes: [[3], [2, 3]], run: (a, b) => F.lerp(a!, b!, 0.7) },
  { name: "logaddexp", shapes: [[2, 3], [3]], run: (a, b) => F.logaddexp(a!, b!) },
  ...[undefined, 0, -1, [0, 2]].flatMap((axis): OpCase[] => [
    { name: `prod over ${JSON.stringify(axis) ?? "all"}`, shapes: [[2, 3, 2]], run: (x) => F.prod(x!, axis, true) },
    { name: `logsumexp over ${JSON.stringify(axis) ?? "all"}`, shapes: [[2, 3, 2]], run: (x) => F.logsumexp(x!, axis) },
  ]),
  ...[0, 1].flatMap((axis): OpCase[] => [
    { name: `cumprod along ${axis}`, shapes: [[3, 5]], run: (x) => F.cumprod(x!, axis) },
    { name: `logcumsumexp along ${axis}`, shapes: [[3, 5]], run: (x) => F.logcumsumexp(x!, axis) },
  ]),
  {
    name: "einsum of products",
    shapes: [
      [2, 3, 2],
      [4, 2, 2],
    ],
    run: (a, b) => F.einsum("bik,jbk->ij", a!, b!),
  },
  { name: "einsum of a diagonal", shapes: [[3, 3, 2]], run: (x) => F.einsum("iij->ij", x!) },
  { name: "cholesky", shapes: [[2, 3, 3]], run: (x) => F.tidy(() => F.cholesky(definite(x!)).to(x!.dtype)) },
  {
    name: "choleskySolve",
    shapes: [
      [3, 2],
      [3, 3],
    ],
    run: (b, x) => F.tidy(() => F.choleskySolve(wide(b!), F.cholesky(definite(x!))).to(b!.dtype)),
  },
  {
    name: "solve",
    shapes: [
      [2, 3, 3],
      [3, 2],
    ],
    run: (a, b) => F.tidy(() => F.solve(definite(a!), wide(b!)).to(b!.dtype)),
  },
  { name: "inverse", shapes: [[3, 3]], run: (x) => F.tidy(() => F.inverse(definite(x!)).to(x!.dtype)) },
  { name: "slogdet", shapes: [[2, 3, 3]], run: (x) => F.tidy(() => F.slogdet(definite(x!)).logabsdet.to(x!.dtype)) },
  { name: "logdet", shapes: [[3, 3]], run: (x) => F.tidy(() => F.logdet(definite(x!)).to(x!.dtype)) },
  { name: "det", shapes: [[3, 3]], run: (x) => F.tidy(() => F.det(definite(x!)).to(x!.dtype)) },
  ...[0, 3, -2].map(
    (power): OpCase => ({
      name: `matrixPower ${power}`,
      shapes: [[2, 2, 2]],
      run: (x) => F.tidy(() => F.matrixPower(definite(x!), power).to(x!.dtype)),
    }),
  ),
  { name: "fftshift", shapes: [[2, 3]], run: (x) => F.fftshift(x!) },
  { name: "ifftshift", shapes: [[2, 3]], run: (x) => F.ifftshift(x!, 1) },
  {
    name: "triangularSolve",
    shapes: [
      [2, 3, 3],
      [3, 2],
    ],
    run: (a, b) => F.tidy(() => F.triangularSolve(definite(a!), wide(b!), { upper: true }).to(b!.dtype)),
  },
  ...ofHost(),
];

/** Factors and what is made of them. */
function ofHost(): OpCase[] {
  const cases: OpCase[] = [
    ...[
      [2, 3, 3],
      [4, 2],
      [2, 4],
    ].flatMap((shape): OpCase[] => [
      { name: `qr, q of ${shape}`, shapes: [shape], run: (x) => F.tidy(() => F.qr(wide(x!)).q.to(x!.dtype)) },
      { name: `qr, r of ${shape}`, shapes: [shape], run: (x) => F.tidy(() => F.qr(wide(x!)).r.to(x!.dtype)) },
      { name: `svdvals of ${shape}`, shapes: [shape], run: (x) => F.tidy(() => F.svdvals(wide(x!)).to(x!.dtype)) },
      { name: `lu, l of ${shape}`, shapes: [shape], run: (x) => F.tidy(() => F.lu(wide(x!)).l.to(x!.dtype)) },
      { name: `lu, u of ${shape}`, shapes: [shape], run: (x) => F.tidy(() => F.lu(wide(x!)).u.to(x!.dtype)) },
      { name: `pinv of ${shape}`, shapes: [shape], run: (x) => F.tidy(() => F.pinv(wide(x!)).to(x!.dtype)) },
    ]),
    {
      name: "svd",
      shapes: [[4, 3]],
      run: (x) =>
        F.tidy(() => {
          const { u, s, vh } = F.svd(wide(x!), { fullMatrices: false });
          return u.mul(s.sqrt()).matmul(vh).to(x!.dtype);
        }),
    },
    ...(["fro", "nuc", 1, -2, Number.POSITIVE_INFINITY] as const).map(
      (order): OpCase => ({
        name: `matrixNorm ${order}`,
        isOfHost: order === "nuc" || order === -2, // by singular values
        shapes: [[2, 3, 2]],
        run: (x) => F.tidy(() => F.matrixNorm(wide(x!), order).to(x!.dtype)),
      }),
    ),
    { name: "matrixExp", shapes: [[2, 2, 2]], run: (x) => F.tidy(() => F.matrixExp(wide(x!)).to(x!.dtype)) },
    { name: "eigvalsh", shapes: [[3, 3]], run: (x) => F.tidy(() => F.eigvalsh(definite(x!)).to(x!.dtype)) },
    {
      name: "eigh",
      shapes: [[3, 3]],
      run: (x) =>
        F.tidy(() => {
          const { eigenvalues, eigenvectors } = F.eigh(definite(x!));
          return eigenvectors.mul(eigenvalues.sqrt()).matmul(eigenvectors, { transposeB: true }).to(x!.dtype);
        }),
    },
    {
      name: "lstsq",
      shapes: [
        [4, 2],
        [4, 3],
      ],
      run: (a, b) => F.tidy(() => F.lstsq(wide(a!), wide(b!)).solution.to(b!.dtype)),
    },
  ];
  return cases.map((each) => ({ isOfHost: true, ...each }));
}

/** Linear algebra is of f32 and f64. */
const wide = (x: F.Tensor) => (x.dtype === "f64" ? x : x.to("f32"));

/** x transpose(x) + 1. */
function definite(given: F.Tensor): F.Tensor {
  const x = wide(given);
  return x.matmul(x, { transposeB: true }).add(F.eye(x.shape.at(-1)!, { dtype: x.dtype, device: x.device }));
}

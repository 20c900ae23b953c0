// Factors, pseudoinverses and functions of matrices against PyTorch. Vectors are compared by what does not depend on their signs.
import type { CallInput, TorchCall } from "@opt/testkit";
import { input, judge, random, table } from "../../../testing/torch-table";
import * as F from "../../functions";
import { arange } from "../../ranges";
import type { Tensor } from "../../tensor/tensor";

const { calls, add } = table();
type DType = "f32" | "f64";

/** Any numbers, of which the diagonal goes up in steps: neither columns nor values come close to each other. */
function regular(shape: readonly number[], dtype: DType = "f64", step = 3): CallInput {
  const [m, n] = shape.slice(-2) as [number, number];
  const made = input(shape, dtype, { requiresGrad: true });
  const values = Array.from(made.values, (_, i) => {
    const [row, column] = [Math.floor(i / n) % m, i % n];
    return random.uniform() - 0.5 + (row === column ? step * (row + 1) : 0);
  });
  return { ...made, values };
}

/** Weighs vectors by 1, 2, ...: of u and vh together, or of each with itself. */
const weights = (k: number, { dtype, device }: Tensor) => arange(1, k + 1, 1, { dtype: dtype as DType, device });
const between = (left: Tensor, right: Tensor) => left.mul(weights(left.shape.at(-1)!, left)).matmul(right);
const BETWEEN = "w = lambda l, r: (l * torch.arange(1, l.shape[-1] + 1, dtype=l.dtype)) @ r";
const told = (value: boolean) => (value ? "True" : "False");

const eigen = (upper: boolean): [string, TorchCall["run"]] => [
  `${BETWEEN};;L, V = torch.linalg.eigh(a, UPLO="${upper ? "U" : "L"}");;(L, w(V, V.mT))`,
  (a) => {
    const { eigenvalues, eigenvectors } = F.eigh(a!, { upper });
    return [eigenvalues, between(eigenvectors, eigenvectors.transpose())];
  },
];
const singular: [string, TorchCall["run"]] = [
  `${BETWEEN};;U, S, Vh = torch.linalg.svd(a, full_matrices=False);;(w(U, Vh), S)`,
  (a) => {
    const { u, s, vh } = F.svd(a!, { fullMatrices: false });
    return [between(u, vh), s];
  },
];
const leastSquares: [string, TorchCall["run"]] = [
  "torch.linalg.lstsq(a, b, driver='gelsd').solution",
  (a, b) => F.lstsq(a!, b!).solution,
];
const orders = ["fro", "nuc", 1, -1, 2, -2, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY] as const;
const inPython = (order: string | number) => (typeof order === "string" ? `'${order}'` : `float('${order}')`);

const shapes = [
  [0, 0],
  [0, 2],
  [2, 0],
  [2, 0, 0],
  [1, 1],
  [3, 3],
  [2, 4],
  [4, 2],
];
for (const shape of shapes) {
  const x = regular(shape);
  for (const mode of ["reduced", "complete"] as const) {
    const judged = mode === "complete" && shape.at(-2)! > shape.at(-1)! ? add : add.second;
    const given = judged === add ? { ...x, requiresGrad: false } : x;
    judged(`qr ${mode}`, [given], `tuple(torch.linalg.qr(a, mode='${mode}'))`, (a) => {
      const { q, r } = F.qr(a!, { mode });
      return [q, r];
    });
  }
  add("qr r", [{ ...x, requiresGrad: false }], "tuple(torch.linalg.qr(a, mode='r'))", (a) => {
    const { q, r } = F.qr(a!, { mode: "r" });
    return [q, r];
  });
  add.second("svd", [x], ...singular);
  add.second("lu", [x], "P, L, U = torch.linalg.lu(a);;(P, L, U)", (a) => {
    const { p, l, u } = F.lu(a!);
    return [p, l, u];
  });
  add.second("pinv", [x], "torch.linalg.pinv(a)", (a) => F.pinv(a!));
  add.second("svdvals", [x], "torch.linalg.svdvals(a)", (a) => F.svdvals(a!));
  if (shape.at(-1) !== shape.at(-2)) continue;
  add.second("eigh", [x], ...eigen(false));
  add.second("eigvalsh", [x], "torch.linalg.eigvalsh(a)", (a) => F.eigvalsh(a!));
  add.second("matrixExp", [x], "torch.linalg.matrix_exp(a)", (a) => F.matrixExp(a!));
  for (const power of [0, 1, 2, -1, -2])
    add.second(`matrixPower ${power}`, [x], `torch.linalg.matrix_power(a, ${power})`, (a) => F.matrixPower(a!, power));
}
// Of a lower rank, and with equal values.
const matrix = (values: number[], shape: number[]): CallInput => ({ values, shape, dtype: "f64" });
const ranks = [
  matrix([1, 2, 2, 4], [2, 2]),
  matrix([0, 0, 0, 0, 0, 0], [2, 3]),
  matrix([1, 1, 1, 1, 1, 1, 2, 2, 2], [3, 3]),
  matrix([1, 0, 0, 0, 1, 0, 0, 0, 1], [3, 3]),
];
for (const x of ranks) {
  const trained = { ...x, requiresGrad: true };
  add("svdvals of a low rank", [x], "torch.linalg.svdvals(a)", (a) => F.svdvals(a!));
  add(
    "svd of a low rank",
    [x],
    "U, S, Vh = torch.linalg.svd(a);;((U[..., :, :S.shape[-1]] * S) @ Vh[..., :S.shape[-1], :], U @ U.mT, Vh @ Vh.mT)",
    (a) => {
      const { u, s, vh } = F.svd(a!);
      const k = s.shape.at(-1)!;
      const product = u
        .slice(0, k, -1)
        .mul(s)
        .matmul(vh.slice(0, k, -2));
      return [product, u.matmul(u.transpose()), vh.matmul(vh.transpose())];
    },
  );
  add("pinv of a low rank", [trained], "torch.linalg.pinv(a, rtol=1e-9)", (a) => F.pinv(a!, { rtol: 1e-9 }));
  add("qr of a low rank", [x], "q, r = torch.linalg.qr(a);;q @ r", (a) => {
    const { q, r } = F.qr(a!);
    return q.matmul(r);
  });
  add("lu of a low rank", [x], "P, L, U = torch.linalg.lu(a);;P @ L @ U", (a) => {
    const { p, l, u } = F.lu(a!);
    return p.matmul(l).matmul(u);
  });
  add(
    "lstsq of a low rank",
    [x, input([x.shape[0]!, 2], "f64")],
    "r = torch.linalg.lstsq(a, b, driver='gelsd');;(r.solution, r.rank.int(), r.singular_values)",
    (a, b) => {
      const { solution, rank, singularValues } = F.lstsq(a!, b!);
      return [solution, rank, singularValues];
    },
  );
}
const equal = { ...matrix([2, 0, 0, 0, 2, 0, 0, 0, 5], [3, 3]), requiresGrad: true };
add("eigvalsh of equal values", [equal], "torch.linalg.eigvalsh(a).sum()", (a) => F.eigvalsh(a!).sum());
add("svdvals of equal values", [equal], "torch.linalg.svdvals(a).sum()", (a) => F.svdvals(a!).sum());
// What PyTorch rejects.
const wrong: [string, CallInput[], string, TorchCall["run"]][] = [
  ["eigh of what is not square", [input([2, 3], "f64")], "torch.linalg.eigh(a)", (a) => F.eigh(a!).eigenvalues],
  ["qr of a vector", [input([3], "f64")], "torch.linalg.qr(a)", (a) => F.qr(a!).q],
  ["svd of NaN", [matrix([1, Number.NaN, 0, 1], [2, 2])], "torch.linalg.svd(a)", (a) => F.svd(a!).s],
  [
    "matrixExp of NaN",
    [matrix([1, Number.NaN, Number.NaN, 1], [2, 2])],
    "torch.linalg.matrix_exp(a)",
    (a) => F.matrixExp(a!),
  ],
  ["lstsq of other rows", [input([2, 3], "f64"), input([3, 1], "f64")], leastSquares[0], leastSquares[1]],
  [
    "matrixPower of what is not square",
    [input([2, 3], "f64")],
    "torch.linalg.matrix_power(a, 2)",
    (a) => F.matrixPower(a!, 2),
  ],
  ...(["f16", "bf16", "i32"] as const).flatMap((dtype): [string, CallInput[], string, TorchCall["run"]][] => [
    ["qr", [input([2, 2], dtype)], "torch.linalg.qr(a)", (a) => F.qr(a!).q],
    ["svd", [input([2, 2], dtype)], "torch.linalg.svd(a)", (a) => F.svd(a!).s],
    ["eigh", [input([2, 2], dtype)], "torch.linalg.eigh(a)", (a) => F.eigh(a!).eigenvalues],
    ["lu", [input([2, 2], dtype)], "torch.linalg.lu(a)", (a) => F.lu(a!).u],
    ["pinv", [input([2, 2], dtype)], "torch.linalg.pinv(a)", (a) => F.pinv(a!)],
    ["lstsq", [input([2, 2], dtype), input([2, 2], dtype)], leastSquares[0], leastSquares[1]],
    ["matrixNorm 2", [input([2, 2], dtype)], "torch.linalg.matrix_norm(a, 2)", (a) => F.matrixNorm(a!, 2)],
    [
      "triangularSolve",
      [input([2, 2], dtype), input([2, 2], dtype)],
      "torch.linalg.solve_triangular(a, b, upper=True)",
      (a, b) => F.triangularSolve(a!, b!, { upper: true }),
    ],
  ]),
];
for (const [name, inputs, code, run] of wrong) add(name, inputs, code, run);
for (const dtype of ["f16", "bf16"] as const) {
  add("matrixNorm of 16 bits", [input([2, 3], dtype)], "torch.linalg.matrix_norm(a)", (a) => F.matrixNorm(a!));
  add("matrixPower of 16 bits", [input([2, 2], dtype)], "torch.linalg.matrix_power(a, 2)", (a) => F.matrixPower(a!, 2));
}
const stored = calls.length;

for (let i = 0; i < 100; i++) {
  const dtype = i % 5 === 4 ? "f32" : "f64";
  const judged = dtype === "f64" ? add.second : add;
  const batch = Array.from({ length: random.below(3) }, () => 1 + random.below(2));
  const [m, n] = [1 + random.below(6), 1 + random.below(6)];
  const [any, square] = [regular([...batch, m, n], dtype), regular([...batch, n, n], dtype)];
  const sides = input([...batch, m, 1 + random.below(3)], dtype, { requiresGrad: true });
  const upper = random.below(2) === 0;
  judged("qr", [any], "tuple(torch.linalg.qr(a))", (a) => {
    const { q, r } = F.qr(a!);
    return [q, r];
  });
  judged("eigh", [square], ...eigen(upper));
  judged("eigvalsh", [square], `torch.linalg.eigvalsh(a, UPLO="${upper ? "U" : "L"}")`, (a) =>
    F.eigvalsh(a!, { upper }),
  );
  judged("svd", [any], ...singular);
  judged("svdvals", [any], "torch.linalg.svdvals(a)", (a) => F.svdvals(a!));
  judged("lu", [any], "P, L, U = torch.linalg.lu(a);;(P, L, U)", (a) => {
    const { p, l, u } = F.lu(a!);
    return [p, l, u];
  });
  judged("pinv", [any], "torch.linalg.pinv(a)", (a) => F.pinv(a!));
  judged("lstsq", [any, sides], ...leastSquares);
  const order = orders[i % orders.length]!;
  const keepDim = random.below(2) === 0;
  judged(
    `matrixNorm ${order}`,
    [any],
    `torch.linalg.matrix_norm(a, ${inPython(order)}, (-1, -2), keepdim=${told(keepDim)})`,
    (a) => F.matrixNorm(a!, order, [-1, -2], keepDim),
  );
  const power = random.below(9) - 3;
  judged(
    `matrixPower ${power}`,
    [regular([...batch, n, n], dtype, 0.5)],
    `torch.linalg.matrix_power(a, ${power})`,
    (a) => F.matrixPower(a!, power),
  );
  judged("matrixExp", [regular([...batch, n, n], dtype, random.below(2) / 2)], "torch.linalg.matrix_exp(a)", (a) =>
    F.matrixExp(a!),
  );
  const [left, unitriangular] = [random.below(2) === 0, random.below(2) === 0];
  const fit = input(left ? [n, 2] : [...batch, 2, n], dtype, { requiresGrad: true });
  judged(
    "triangularSolve",
    [square, fit],
    `torch.linalg.solve_triangular(a, b, upper=${told(upper)}, left=${told(left)}, unitriangular=${told(unitriangular)})`,
    (a, b) => F.triangularSolve(a!, b!, { upper, left, unitriangular }),
  );
}
add("qr of panels", [regular([70, 50])], "tuple(torch.linalg.qr(a))", (a) => {
  const { q, r } = F.qr(a!);
  return [q, r];
});
const panels: [string, TorchCall["run"]] = [
  "tuple(torch.linalg.qr(a))",
  (a) => {
    const { q, r } = F.qr(a!);
    return [q, r];
  },
];
add("qr of panels, wide", [{ ...regular([40, 70], "f32"), requiresGrad: false }], ...panels);
add("qr of panels, tall", [{ ...regular([2, 70, 40], "f32"), requiresGrad: false }], ...panels);
add("svd of 40", [regular([40, 30])], ...singular);
add("eigh of 40", [regular([40, 40])], ...eigen(false));
await judge(new URL("../../../testing/goldens/factors.json", import.meta.url), calls, stored);

// Linear algebra against PyTorch.
import type { CallInput } from "@opt/testkit";
import { input, judge, random, table } from "../../../testing/torch-table";
import * as F from "../../functions";
import { eye } from "../../ranges";
import type { Tensor } from "../../tensor/tensor";

const { calls, add } = table();
const trained = { requiresGrad: true };

/** Positive definite: M transpose(M) + 1. The upper triangle is another one, which nobody may read. */
const definite = (a: string) => `(${a} @ ${a}.mT + torch.eye(${a}.shape[-1], dtype=${a}.dtype))`;
function positive(a: Tensor): Tensor {
  const unit = eye(a.shape.at(-1)!, { dtype: a.dtype as "f64", device: a.device });
  return a.matmul(a, { transposeB: true }).add(unit);
}
/** Far from singular, and of either sign. */
const regular = (shape: readonly number[], dtype: "f32" | "f64" = "f64"): CallInput => {
  const made = input(shape, dtype, trained);
  const n = shape.at(-1)!;
  const shift = random.below(n + 1);
  const values = Array.from(made.values, (value, i) => {
    const [row, column] = [Math.floor(i / n) % n, i % n];
    return column === (row + shift) % n ? value + (random.below(2) === 0 ? 4 : -4) : value;
  });
  return { ...made, values };
};

const factor = { values: [2, 0, 0, 1, 3, 0, -1, 0.5, 1.5], shape: [3, 3], dtype: "f64", requiresGrad: true } as const;
const swapped = { values: [0, 2, 1, 3, 0, 0, 1, 1, 5], shape: [3, 3], dtype: "f64", requiresGrad: true } as const;
const empty = input([0, 0], "f64", trained);
const none = input([0, 2, 2], "f64", trained);
const matrix = (values: number[]) => ({ values, shape: [2, 2], dtype: "f64" }) as const;
const ones = matrix([1, 1, 1, 1]);

add.second("cholesky", [factor], `torch.linalg.cholesky(${definite("a")})`, (a) => F.cholesky(positive(a!)));
add.second(
  "cholesky, as it is",
  [matrix([4, 2, 2, 10])].map((x) => ({ ...x, requiresGrad: true })),
  "torch.linalg.cholesky(a)",
  (a) => F.cholesky(a!),
);
add("cholesky of a triangle", [matrix([4, 99, 2, 10])], "torch.linalg.cholesky(a)", (a) => F.cholesky(a!));
add("cholesky of an upper triangle", [matrix([4, 2, 99, 10])], "torch.linalg.cholesky(a, upper=True)", (a) =>
  F.cholesky(a!, { upper: true }),
);
add.second("choleskySolve", [factor, input([3, 2], "f64", trained)], "torch.cholesky_solve(b, a.tril())", (a, b) =>
  F.choleskySolve(b!, a!),
);
add.second(
  "choleskySolve of upper",
  [factor, input([3, 2], "f64", trained)],
  "torch.cholesky_solve(b, a.tril().mT, upper=True)",
  (a, b) => F.choleskySolve(b!, a!.transpose(), { upper: true }),
);
add.second("solve", [swapped, input([3, 2], "f64", trained)], "torch.linalg.solve(a, b)", (a, b) => F.solve(a!, b!));
add.second("solve of a vector", [swapped, input([3], "f64", trained)], "torch.linalg.solve(a, b)", (a, b) =>
  F.solve(a!, b!),
);
add.second(
  "solve from the right",
  [swapped, input([2, 3], "f64", trained)],
  "torch.linalg.solve(a, b, left=False)",
  (a, b) => F.solve(a!, b!, { left: false }),
);
add.second("inverse", [swapped], "torch.linalg.inv(a)", (a) => F.inverse(a!));
add.second("slogdet", [swapped], "tuple(torch.linalg.slogdet(a))", (a) => {
  const { sign, logabsdet } = F.slogdet(a!);
  return [sign, logabsdet];
});
add.second("det", [swapped], "torch.linalg.det(a)", (a) => F.det(a!));
add.second("logdet", [swapped], "torch.logdet(-a)", (a) => F.logdet(a!.neg()));
for (const nothing of [empty, none]) {
  add("cholesky", [nothing], "torch.linalg.cholesky(a)", (a) => F.cholesky(a!));
  add("inverse", [nothing], "torch.linalg.inv(a)", (a) => F.inverse(a!));
  add("slogdet", [nothing], "tuple(torch.linalg.slogdet(a))", (a) => Object.values(F.slogdet(a!)) as Tensor[]);
  add("det", [nothing], "torch.linalg.det(a)", (a) => F.det(a!));
  add(
    "solve",
    [nothing, input([...nothing.shape.slice(0, -1), 3], "f64", trained)],
    "torch.linalg.solve(a, b)",
    (a, b) => F.solve(a!, b!),
  );
}
// What PyTorch rejects, and what is singular.
add("cholesky of a singular matrix", [ones], "torch.linalg.cholesky(a)", (a) => F.cholesky(a!));
add("cholesky of a negative matrix", [matrix([-1, 0, 0, 1])], "torch.linalg.cholesky(a)", (a) => F.cholesky(a!));
add("solve of a singular matrix", [ones], "torch.linalg.solve(a, a)", (a) => F.solve(a!, a!));
add("inverse of a singular matrix", [ones], "torch.linalg.inv(a)", (a) => F.inverse(a!));
add(
  "slogdet of a singular matrix",
  [ones],
  "tuple(torch.linalg.slogdet(a))",
  (a) => Object.values(F.slogdet(a!)) as Tensor[],
);
add("det of a singular matrix", [ones], "torch.linalg.det(a)", (a) => F.det(a!));
add("logdet of a singular matrix", [ones], "torch.logdet(a)", (a) => F.logdet(a!));
add("inverse of what is not square", [input([2, 3], "f64")], "torch.linalg.inv(a)", (a) => F.inverse(a!));
add("cholesky of integers", [input([2, 2], "i32")], "torch.linalg.cholesky(a)", (a) => F.cholesky(a!));

for (let i = 0; i < 70; i++) {
  const n = 1 + random.below(6);
  const batch = Array.from({ length: random.below(3) }, () => 1 + random.below(2));
  const dtype = i % 5 === 4 ? "f32" : "f64";
  const judged = dtype === "f64" ? add.second : add;
  const shape = [...batch, n, n];
  const sides = [...(random.below(2) === 0 ? batch : []), n, 1 + random.below(3)];
  const upper = random.below(2) === 0;
  const told = upper ? "True" : "False";
  judged("cholesky", [input(shape, dtype, trained)], `torch.linalg.cholesky(${definite("a")}, upper=${told})`, (a) =>
    F.cholesky(positive(a!), { upper }),
  );
  judged(
    "choleskySolve",
    [input(shape, dtype, trained), input(sides, dtype, trained)],
    `torch.cholesky_solve(b, torch.linalg.cholesky(${definite("a")}, upper=${told}), upper=${told})`,
    (a, b) => F.choleskySolve(b!, F.cholesky(positive(a!), { upper }), { upper }),
  );
  judged("solve", [regular(shape, dtype), input(sides, dtype, trained)], "torch.linalg.solve(a, b)", (a, b) =>
    F.solve(a!, b!),
  );
  judged("inverse", [regular(shape, dtype)], "torch.linalg.inv(a)", (a) => F.inverse(a!));
  judged("slogdet", [regular(shape, dtype)], "tuple(torch.linalg.slogdet(a))", (a) => {
    const { sign, logabsdet } = F.slogdet(a!);
    return [sign, logabsdet];
  });
  judged("det", [regular(shape, dtype)], "torch.linalg.det(a)", (a) => F.det(a!));
}
const large = regular([40, 40]);
add("solve of 40", [large, input([40, 3], "f64", trained)], "torch.linalg.solve(a, b)", (a, b) => F.solve(a!, b!));
add("cholesky of 40", [input([40, 40], "f64", trained)], `torch.linalg.cholesky(${definite("a")})`, (a) =>
  F.cholesky(positive(a!)),
);
await judge(new URL("../../../testing/goldens/linear-algebra.json", import.meta.url), calls);

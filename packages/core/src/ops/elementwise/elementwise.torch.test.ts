// Elementwise ops against PyTorch.

import { ALL, FLOATS, input, judge, random, randomShape, randomShapes, table } from "../../../testing/torch-table";
import * as F from "../../functions";
import type { Tensor } from "../../tensor/tensor";

const { calls, add } = table();
const far = [-Infinity, -1000, -1e-20, 0, 1e-20, 1000, Infinity];
const pairs = far.flatMap((x) => far.map((y) => [x, y] as const)).filter(([x, y]) => x !== y || Number.isFinite(x));
const sides = [0, 1].map(
  (side) =>
    ({ values: pairs.map((pair) => pair[side]!), shape: [pairs.length], dtype: "f64", requiresGrad: true }) as const,
);
add("logaddexp far out", sides, "torch.logaddexp(a, b)", (x, y) => F.logaddexp(x!, y!));
const UNARY: Readonly<Record<string, (x: Tensor) => Tensor>> = {
  log1p: (x) => F.log1p(x),
  expm1: (x) => F.expm1(x),
  rsqrt: F.rsqrt,
  square: F.square,
  floor: F.floor,
  ceil: F.ceil,
  sign: F.sign,
  isnan: F.isnan,
  isfinite: F.isfinite,
  logical_not: F.logicalNot,
};
const NAMES = Object.keys(UNARY);
for (let i = 0; i < 120; i++) {
  const name = NAMES[i % NAMES.length]!;
  const given = input(randomShape(), i % 2 === 0 ? "f64" : random.pick(ALL), {
    edges: i % 3 === 0,
    requiresGrad: i % 3 > 0,
    positive: name === "rsqrt",
  });
  add(name, [given], `torch.${name}(a)`, (a) => UNARY[name]!(a!));
}
for (const name of ["log1p", "expm1", "rsqrt", "square"] as const) {
  for (let i = 0; i < 4; i++)
    add.second(name, [input(randomShape(), "f64", { positive: true, requiresGrad: true })], `torch.${name}(a)`, (a) =>
      UNARY[name]!(a!),
    );
}
for (let i = 0; i < 50; i++) {
  const [a, b, c] = randomShapes(3) as [number[], number[], number[]];
  const [one, other] = i % 2 === 0 ? (["f64", "f64"] as const) : [random.pick(ALL), random.pick(ALL)];
  add("logicalAnd", [input(a, one, { edges: true }), input(b, other)], "torch.logical_and(a, b)", (x, y) =>
    F.logicalAnd(x!, y!),
  );
  add("logicalOr", [input(a, one, { edges: true }), input(b, other)], "torch.logical_or(a, b)", (x, y) =>
    F.logicalOr(x!, y!),
  );
  const dtype = i % 2 === 0 ? "f64" : random.pick(FLOATS);
  const trained = { requiresGrad: true };
  add("logaddexp", [input(a, dtype, trained), input(b, dtype, trained)], "torch.logaddexp(a, b)", (x, y) =>
    F.logaddexp(x!, y!),
  );
  const three = [a, b, c].map((each) => input(each, dtype, trained));
  add("lerp", three, "torch.lerp(a, b, c)", (x, y, z) => F.lerp(x!, y!, z!));
  add("lerp by a number", three.slice(0, 2), `torch.lerp(a, b, ${i / 20})`, (x, y) => F.lerp(x!, y!, i / 20));
  if (i % 5 > 0) continue;
  const exact = [a, b, c].map((each) => input(each, "f64", trained));
  add.second("logaddexp", exact.slice(0, 2), "torch.logaddexp(a, b)", (x, y) => F.logaddexp(x!, y!));
  add.second("lerp", exact, "torch.lerp(a, b, c)", (x, y, z) => F.lerp(x!, y!, z!));
}
await judge(new URL("../../../testing/goldens/elementwise.json", import.meta.url), calls);

// Complex numbers against PyTorch: they come and go as pairs.
import { input, judge, random, randomShape, randomShapes, table } from "../../testing/torch-table";
import * as F from "../functions";
import type { Tensor } from "../tensor/tensor";
import { viewAsComplex, viewAsReal } from "./complex";

const { calls, add } = table();
const trained = { requiresGrad: true };
const pairs = (shape: readonly number[]) => input([...shape, 2], "f32", trained);
const z = (name: string) => `torch.view_as_complex(${name})`;
const told = (code: string) => `torch.view_as_real((${code}).resolve_conj())`;
const ofOne = (run: (z: Tensor) => Tensor) => (a: Tensor | undefined) => run(viewAsComplex(a!));

for (let i = 0; i < 100; i++) {
  const shape = randomShape();
  add.second(
    "real",
    [pairs(shape)],
    `${z("a")}.real ** 2`,
    ofOne((x) => F.real(x).pow(2)),
  );
  add.second(
    "imag",
    [pairs(shape)],
    `${z("a")}.imag ** 2`,
    ofOne((x) => F.imag(x).pow(2)),
  );
  add.second(
    "conj",
    [pairs(shape)],
    `${told(`${z("a")}.conj()`)} ** 2`,
    ofOne((x) => viewAsReal(F.conj(x)).pow(2)),
  );
  const nonZero = pairs(shape);
  const values = Array.from(nonZero.values, (value) => (value === 0 ? 1 : value));
  add.second("angle", [{ ...nonZero, values }], `${z("a")}.angle()`, ofOne(F.angle));
  add.second("complexAbs", [{ ...nonZero, values }], `${z("a")}.abs()`, ofOne(F.complexAbs));
  const [a, b] = randomShapes(2) as [number[], number[]];
  const same = input(a, "f32", trained);
  add.second("complex", [same, input(a, "f32", trained)], `${told("torch.complex(a, b)")} ** 2`, (a, b) =>
    viewAsReal(F.complex(a!, b!)).pow(2),
  );
  const length = input(a, "f32", { ...trained, positive: true });
  add.second("polar", [length, input(a, "f32", trained)], told("torch.polar(a, b)"), (a, b) =>
    viewAsReal(F.polar(a!, b!)),
  );
  add.second("complexMul", [pairs(a), pairs(b)], told(`${z("a")} * ${z("b")}`), (a, b) =>
    viewAsReal(F.complexMul(viewAsComplex(a!), viewAsComplex(b!))),
  );
  add.second("complexMul by a real number", [pairs(a), input(b, "f32", trained)], told(`${z("a")} * b`), (a, b) =>
    viewAsReal(F.complexMul(viewAsComplex(a!), b!)),
  );
  const [m, k, n] = [1, 2, 3].map(() => 1 + random.below(4)) as [number, number, number];
  add.second(
    "complexEinsum",
    [pairs([2, m, k]), pairs([2, k, n]), pairs([n])],
    told(`torch.einsum('bmk,bkn,n->mb', ${z("a")}, ${z("b")}, ${z("c")})`),
    (...given) => viewAsReal(F.complexEinsum("bmk,bkn,n->mb", ...given.map(viewAsComplex))),
  );
}
add("angle and length of 0", [{ ...pairs([1]), values: [0, 0] }], `${z("a")}.angle() + ${z("a")}.abs()`, (a) =>
  F.angle(viewAsComplex(a!)).add(F.complexAbs(viewAsComplex(a!))),
);
add("complex of other shapes", [input([2], "f32"), input([3], "f32")], told("torch.complex(a, b)"), (a, b) =>
  viewAsReal(F.complex(a!, b!)),
);
await judge(new URL("../../testing/goldens/complex-numbers.json", import.meta.url), calls, 120);

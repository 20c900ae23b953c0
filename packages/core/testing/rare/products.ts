/** Rare arguments of products: transposed operands, batches that broadcast, vectors, equations, sizes beside those of tiles. */

import * as F from "../../src/functions";
import { layerNorm } from "../../src/ops";
import type { Row } from "../draw";

const SIZES = [0, 1, 2, 3, 5, 7, 17];
const LONG = [33, 64, 67, 130];

const matmul: Row = (draw) => {
  const size = () => (draw.int(8) === 0 ? draw.random.pick(LONG) : draw.random.pick(SIZES));
  const [m, k, n] = [size(), size(), size()];
  const [transposeA, transposeB] = [draw.flip(), draw.flip()];
  const batch = draw.random.pick([[], [], [2], [3], [2, 3], [1], [2, 1]]);
  const part = () => (draw.flip() ? batch.slice(draw.int(batch.length + 1)) : batch.map((e) => (draw.flip() ? e : 1)));
  const a = [...part(), ...(transposeA ? [k, m] : [m, k])];
  const b = [...part(), ...(transposeB ? [n, k] : [k, n])];
  return {
    inputs: [draw.numbers(a), draw.numbers(b)],
    code: `${transposeA ? "a.mT" : "a"} @ ${transposeB ? "b.mT" : "b"}`,
    run: (a, b) => a!.matmul(b!, { transposeA, transposeB }),
  };
};

const vectors: Row = (draw) => {
  const size = () => draw.random.pick([...SIZES, 40]);
  const [k, n] = [size(), size()];
  const batch = draw.shape(2);
  const [a, b] = draw.flip() ? [[k], [...batch, k, n]] : [[...batch, n, k], [k]];
  return { inputs: [draw.numbers(a!), draw.numbers(b!)], code: "a @ b", run: (a, b) => a!.matmul(b!) };
};

/** Equations, and extents of their letters in order. */
const EQUATIONS = [
  "ii->i",
  "ii->",
  "ijk->ki",
  "ij->",
  "i,j->ij",
  "ij,ij->",
  "ij,ij->i",
  "bij,bjk->bik",
  "bhqd,bhkd->bhqk",
  "bhqk,bhkd->bqhd",
  "ij,jk,kl->il",
  "ij,jk",
  "ba",
  "iij,jk->ik",
  "ij,k->jk",
  "bij,kj->ibk",
  "abc,cd,ad->bd",
];

const einsum: Row = (draw) => {
  const equation = draw.random.pick(EQUATIONS);
  const terms = equation.split("->")[0]!.split(",");
  const extents = new Map<string, number>();
  for (const letter of terms.join("")) extents.set(letter, extents.get(letter) ?? draw.random.pick([1, 2, 3, 5]));
  const letters = ["a", "b", "c"].slice(0, terms.length);
  return {
    inputs: terms.map((term) => draw.numbers(Array.from(term, (letter) => extents.get(letter)!))),
    code: `torch.einsum("${equation}", ${letters.join(", ")})`,
    run: (...given) => F.einsum(equation, ...given),
  };
};

const dots: Row = (draw) => {
  const batch = draw.random.pick([[], [2], [3, 2], [1, 2]]);
  const [i, j, k] = [1, 2, 3].map(() => draw.random.pick([1, 2, 4])) as [number, number, number];
  const equation = draw.random.pick(["...ij,...jk->...ik", "...ij,jk->...ik", "...ij,...jk->ik...", "i...,i...->..."]);
  const [first, second] = equation.startsWith("i...")
    ? [
        [i, ...batch],
        [i, ...batch.slice(-1)],
      ]
    : [[...batch, i, j], equation.includes(",jk") ? [j, k] : [...batch.map((e) => (draw.flip() ? e : 1)), j, k]];
  return {
    inputs: [draw.numbers(first!), draw.numbers(second!)],
    code: `torch.einsum("${equation}", a, b)`,
    run: (a, b) => F.einsum(equation, a!, b!),
  };
};

const norm: Row = (draw) => {
  const width = draw.random.pick([3, 4, 7, 33, 300]);
  const eps = draw.random.pick([1e-5, 1e-2, 1]);
  const biased = draw.flip();
  return {
    inputs: [draw.numbers([...draw.shape(2), width]), draw.numbers([width]), draw.numbers([width])],
    code: `F.layer_norm(a, (${width},), b, ${biased ? "c" : "None"}, ${eps})`,
    run: (x, w, b) => layerNorm(x!, w!, biased ? b! : null, eps),
  };
};

export const PRODUCTS: Readonly<Record<string, Row>> = {
  "matmul, transposed": matmul,
  "matmul with a vector": vectors,
  "einsum of letters": einsum,
  "einsum with dots": dots,
  "layerNorm with eps": norm,
};

// einsum against PyTorch.

import { input, judge, random, table } from "../../testing/torch-table";
import * as F from "../functions";

const { calls, add } = table();
const trained = { requiresGrad: true };

/** An equation whose operands' axes have these extents: "ij,jk->ik" of { i: 2, j: 3, k: 4 }. */
function check(equation: string, shapes: readonly (readonly number[])[], second = false): void {
  const inputs = shapes.map((shape) => input(shape, "f64", trained));
  const names = inputs.map((_, i) => "abcd"[i]);
  (second ? add.second : add)(equation, inputs, `torch.einsum("${equation}", ${names})`, (...given) =>
    F.einsum(equation, ...given),
  );
}

check(
  "ij,jk->ik",
  [
    [2, 3],
    [3, 4],
  ],
  true,
);
check("ij,jk", [
  [2, 3],
  [3, 4],
]);
check(
  "bij,bjk->bik",
  [
    [2, 2, 3],
    [2, 3, 4],
  ],
  true,
);
check(
  "bhqd,bhkd->bhqk",
  [
    [2, 2, 3, 4],
    [2, 2, 5, 4],
  ],
  true,
);
check("i,j->ij", [[2], [3]], true);
check("i,i->", [[3], [3]]);
check(
  "ij,ij->ij",
  [
    [2, 3],
    [2, 3],
  ],
  true,
);
check("ii", [[3, 3]], true);
check("ii->i", [[3, 3]], true);
check("iji->j", [[3, 2, 3]]);
check(
  "ii,ij->j",
  [
    [3, 3],
    [3, 2],
  ],
  true,
);
check("ij->ji", [[2, 3]]);
check("ij->", [[2, 3]]);
check("ba", [[2, 3]]);
check("Ab", [[2, 3]]);
check("aB", [[2, 3]]);
check(
  "...ij,...jk->...ik",
  [
    [2, 1, 2, 3],
    [4, 3, 2],
  ],
  true,
);
check("...i,i...->...", [
  [2, 3],
  [3, 2],
]);
check("...i->i", [[2, 2, 3]]);
check("...", [[2, 3]]);
check("...a,...b", [
  [2, 3],
  [2, 4],
]);
check(
  "ij,jk,kl->il",
  [
    [2, 3],
    [3, 4],
    [4, 2],
  ],
  true,
);
check("i,ij,j->", [[2], [2, 3], [3]], true);
check(
  "bn,anm,bm->ba",
  [
    [2, 3],
    [4, 3, 2],
    [2, 2],
  ],
  true,
);
check("ij,jk->ik", [
  [2, 1],
  [3, 4],
]);
check(
  "ij,ij->i",
  [
    [2, 1],
    [2, 3],
  ],
  true,
);
check("ij,jk->ik", [
  [2, 0],
  [0, 4],
]);
check("ij->i", [[0, 2]]);
check("", [[]]);
check(",i->i", [[], [3]], true);
check(" i j , j k -> i k ", [
  [2, 3],
  [3, 2],
]);
check("ij->ji...", [[2, 3]]);
// What PyTorch rejects.
check("ij->ijk", [[2, 3]]);
check("ij->ii", [[2, 3]]);
check("ij,jk->ik", [
  [2, 3],
  [4, 2],
]);
check("ii->i", [[1, 2]]);
check("i,i", [[2]]);
check("ij", [[2]]);
check("i->j->k", [[2]]);
check("i..j", [[2, 3]]);

const LETTERS = "abcdeXYZ";
for (let i = 0; i < 200; i++) {
  const extents = new Map([...LETTERS].map((letter) => [letter, 1 + random.below(3)]));
  const batch = Array.from({ length: random.below(3) }, () => 1 + random.below(3));
  const terms = Array.from({ length: 1 + random.below(3) }, () => {
    const letters = Array.from({ length: random.below(4) }, () => random.pick([...LETTERS].slice(0, 5 + (i % 3))));
    const dots = random.below(3) === 0 ? random.below(batch.length + 1) : -1;
    const place = random.below(letters.length + 1);
    const shapeOf = (list: readonly string[]) => list.map((letter) => extents.get(letter)!);
    const middle =
      dots < 0 ? [] : batch.slice(batch.length - dots).map((extent) => (random.below(4) === 0 ? 1 : extent));
    return {
      letters,
      text: letters.toSpliced(place, 0, ...(dots < 0 ? [] : ["..."])).join(""),
      shape: [...shapeOf(letters.slice(0, place)), ...middle, ...shapeOf(letters.slice(place))],
    };
  });
  const all = [...new Set(terms.flatMap(({ letters }) => letters))].filter(() => random.below(2) === 0);
  const output = ["", `->${all.join("")}`, `->...${all.join("")}`][random.below(3)]!;
  check(
    terms.map(({ text }) => text).join(",") + output,
    terms.map(({ shape }) => shape),
    i % 4 === 0,
  );
}
await judge(new URL("../../testing/goldens/einsum.json", import.meta.url), calls);

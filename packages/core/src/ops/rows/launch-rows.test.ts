/** A row program of one's own, with a label for each row. */
import { expect, it } from "vitest";
import { tensor, zeros } from "../../create";
import { atLabel, defineRows } from "../../rule/rows/row-program";
import { launchRows } from "./launch-rows";

const picked = defineRows({
  name: "picked",
  inputs: { x: "matrix" },
  labels: true,
  rows: ({ x }) => ({ y: atLabel(x) }),
});

const x = () =>
  tensor([
    [1, 2],
    [3, 4],
    [5, 6],
  ]);

it.each([
  ["-100 by default", [1, -100, 0], {}, [2, 0, 5]],
  ["ignoreIndex", [1, -7, 0], { ignoreIndex: -7 }, [2, 0, 5]],
] as const)("takes the element at the label, and 0 where it is %s", (_, labels, options, expected) => {
  const y = zeros([3]);
  const classes = tensor(labels, { dtype: "i32" });
  launchRows(picked, { inputs: { x: x() }, labels: classes, outputs: { y }, rows: 3, length: 2, ...options });
  expect(y.tolist()).toEqual(expected);
});

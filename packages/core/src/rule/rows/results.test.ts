import { expect, it } from "vitest";
import { crossEntropyGradRows } from "../row-programs/cross-entropy";
import { layerNormGradAddRows } from "../row-programs/layer-norm";
import { resultsOfColumns, resultsOfRows, rootsOf } from "./results";

it("parts the outputs of rows from those of columns, by their slots", () => {
  const { outputs, nodes } = layerNormGradAddRows;
  const [rows, columns] = [resultsOfRows(layerNormGradAddRows), resultsOfColumns(layerNormGradAddRows)];
  const slots = [...rows, ...columns].map(({ slot }) => slot).sort();
  expect(slots).toEqual([...outputs.keys()]);
  expect(rows.every(({ kind }) => kind !== "columns")).toBe(true);
  for (const { node, term } of columns) expect(nodes[node]).toMatchObject({ op: "columns", args: [term] });
});

it("has the elements at the label among the roots", () => {
  const results = resultsOfRows(crossEntropyGradRows);
  expect(rootsOf(results)).toEqual([results[0]!.node, results[0]!.atLabel]);
});

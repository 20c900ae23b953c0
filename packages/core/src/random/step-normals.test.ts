import { expect, it } from "vitest";
import { normalsAt } from "./step-normals";

it("draws standard normal numbers", () => {
  const values = normalsAt(7, 3, 20_001);
  const mean = values.reduce((sum, x) => sum + x, 0) / values.length;
  const variance = values.reduce((sum, x) => sum + (x - mean) ** 2, 0) / values.length;
  expect(Math.abs(mean)).toBeLessThan(0.03); // four deviations
  expect(Math.abs(variance - 1)).toBeLessThan(0.04);
});

it("depends on the seed, the step and the place alone", () => {
  const values = [...normalsAt(7, 3, 10)];
  expect([...normalsAt(7, 3, 7)]).toEqual(values.slice(0, 7));
  for (const other of [
    normalsAt(8, 3, 10),
    normalsAt(7, 4, 10),
    normalsAt(7, 3 + 2 ** 32, 10),
    normalsAt(7 + 2 ** 32, 3, 10),
  ])
    expect([...other].filter((x, i) => x === values[i])).toEqual([]);
});

import { expect, it } from "vitest";
import { smooth, thin } from "./charts";
import { descend } from "./counterexample";
import { htmlReport } from "./report";

it("a report holds its table and four charts, and loads nothing", async () => {
  const run = { losses: [2, 1, 0.5], accuracies: [0.9, 0.95], seconds: 1, imagesPerSecond: 1000 };
  const html = await htmlReport({
    device: "<js>",
    epochs: 2,
    batchSize: 8,
    seed: 1,
    results: [
      { optimizer: "NAdam", ...run },
      { optimizer: "AdamW", ...run },
    ],
    descents: [descend(false, 300), descend(true, 300)],
  });
  expect(html.match(/<svg/g)).toHaveLength(4);
  expect(html).toContain("<td>95.00 %</td>");
  expect(html).toContain("&#60;js&#62;");
  expect(html).not.toMatch(/<script|<link|<img|@import|url\(["']?http/);
});

it("smoothing begins at the first value and forgets it", () => {
  expect(smooth([4, 4, 4]).map((value) => value.toFixed(9))).toEqual(Array(3).fill("4.000000000"));
  expect(smooth([10, ...Array(500).fill(1)]).at(-1)).toBeCloseTo(1, 5);
});

it("thinning keeps the last", () => expect(thin([1, 2, 3, 4, 5, 6, 7], 3)).toEqual([1, 4, 7]));

import { expect, it } from "vitest";
import { smooth, thin } from "./charts";
import { descend } from "./counterexample";
import { htmlReport } from "./report";

it("a report holds its table and its charts with labelled axes, and loads nothing", () => {
  const run = { losses: [2, 1, 0.5], accuracies: [0.9, 0.95], seconds: 1, imagesPerSecond: 1000 };
  const html = htmlReport({
    device: "<js>",
    epochs: 2,
    batchSize: 8,
    seed: 1,
    results: [
      { optimizer: "NAdam", ...run },
      { optimizer: "AdamW", ...run },
    ],
    speeds: [
      { optimizer: "NAdam", ours: 0.6, limit: 0.5 },
      { optimizer: "AdamW", ours: 1, limit: 0.5 },
    ],
    resumed: { before: [2, 1.5], uninterrupted: [1, 0.5], resumed: [1, 0.5] },
    descents: [descend(false, 300), descend(true, 300)],
  });
  const charts = html.split("<svg ").slice(1);
  const axes = charts.map((svg) => [...svg.matchAll(/class="axis"[^>]*>([^<]*)</g)].map(([, words]) => words));
  expect(axes).toEqual([
    ...Array(2).fill(["step", "cross-entropy (log scale)"]), // one for each run
    ["epoch", "test accuracy"],
    ["milliseconds a step"], // of rows with names
    ["step", "cross-entropy"],
    ["step t", "position x"],
    ["step t", "average regret (log scale)"],
  ]);
  for (const svg of charts) expect(svg).toContain('role="img" aria-label="');
  expect(html).toContain("color-scheme: light dark");
  expect(html).toContain("<td>95.00 %</td>");
  expect(html).toContain("Here a step takes 1.20 to 2.00 times the limit.");
  expect(html).toContain("All 2 losses that follow are those of the run that never stopped, bit for bit.");
  expect(html).toContain("&#60;js&#62;");
  expect(html).not.toMatch(/<script|<link|<img|@import|url\(["']?http/);
});

it("smoothing begins at the first value and forgets it", () => {
  expect(smooth([4, 4, 4]).map((value) => value.toFixed(9))).toEqual(Array(3).fill("4.000000000"));
  expect(smooth([10, ...Array(500).fill(1)]).at(-1)).toBeCloseTo(1, 5);
});

it("thinning keeps the last", () => expect(thin([1, 2, 3, 4, 5, 6, 7], 3)).toEqual([1, 4, 7]));

import fc from "fast-check";
import { expect, it } from "vitest";
import { boxOf, type Chart, chartsOf, describe, draw, format, placesOf, readAt, sampleLine, stacked } from "../chart";

const chart: Chart = {
  title: "A <run>",
  x: { label: "step" },
  y: { label: "loss" },
  series: [{ name: "loss", y: [4, 3, 2, 1] }],
};
const textsOf = (svg: string) => [...svg.matchAll(/<text [^>]*>([^<]*)</g)].map(([, words]) => words);

it("labels both axes and their ticks", () => {
  expect(textsOf(draw(chart))).toEqual([
    ...["1", "1.5", "2", "2.5", "3", "3.5", "4"],
    ...["1", "1.5", "2", "2.5", "3", "3.5", "4"],
    "step",
    "loss",
  ]);
});

it("is one SVG element that needs nothing else, and is named for screen readers", () => {
  const svg = draw(chart);
  expect(svg).toMatch(/^<svg [^>]*role="img"[^>]*>.*<\/svg>$/);
  expect(svg).not.toMatch(/<script|href|url\(/);
  expect(svg).toContain('aria-label="A &lt;run>. x: step, 1 to 4; y: loss, 1 to 4. loss: from 4 to 1"');
});

it("has colors for light and dark, of the page around it or as told", () => {
  expect(draw(chart)).toContain("light-dark(");
  expect(draw(chart)).not.toContain('style="color-scheme');
  expect(draw({ ...chart, scheme: "dark" })).toContain('style="color-scheme:dark"');
});

it("shows a title and a heading, a legend and a rule where asked", () => {
  const svg = draw({ ...chart, heading: "on wasm", legend: true, rule: 2.5, width: 320, height: 200 });
  expect(svg).toContain('viewBox="0 0 320 200"');
  expect(textsOf(svg)).toEqual(expect.arrayContaining(["A &lt;run>", "on wasm", "loss"]));
  expect(svg).toContain('stroke-dasharray="4 4"');
  expect(draw({ ...chart, series: [...chart.series, ...chart.series], legend: false })).not.toContain('class="name"');
});

it("tells series apart by dash, mark and color", () => {
  const svg = draw({ ...chart, series: ["a", "b", "c"].map((name, i) => ({ name, y: [i, i + 1] })) });
  const distinct = (pattern: RegExp) => new Set([...svg.matchAll(pattern)].map(([, found]) => found)).size;
  expect(distinct(/<polyline[^>]*stroke="(#\w+)"/g)).toBe(3);
  expect(distinct(/ d="(M-?[\d.]+ -?[\d.]+[aHL][^"]*)" transform/g)).toBe(3);
  expect(distinct(/stroke-dasharray="([^"]*)"/g)).toBe(2); // the first is solid
});

it("draws lengths in proportion: 52 times looks 52 times", () => {
  const svg = draw({
    title: "Milliseconds",
    x: { label: "milliseconds" },
    y: { label: "", rows: ["opt", "other"] },
    series: [{ name: "median", as: "bars", y: [0, 1], x: [2, 104], labels: ["2 ms", "104 ms"] }],
  });
  const [short, long] = [...svg.matchAll(/<rect[^>]*width="([\d.]+)"/g)].map(([, width]) => Number(width));
  expect(long! / short!).toBeCloseTo(52, 0);
  expect(textsOf(svg)).toEqual(expect.arrayContaining(["opt", "other", "2 ms", "104 ms", "milliseconds"]));
  expect(svg).toContain("median: opt 2 ms, other 104 ms");
});

it("draws bars of series that share rows below each other", () => {
  const bars = { as: "bars" as const, y: [0], x: [1] };
  const series = [
    { ...bars, name: "a" },
    { ...bars, name: "b", color: "faint" },
  ];
  const svg = draw({ title: "t", x: { label: "ms" }, y: { label: "", rows: ["r"] }, series, legend: false });
  const tops = [...svg.matchAll(/<rect[^>]* y="([\d.]+)"/g)].map(([, y]) => Number(y));
  expect(tops[1]).toBeGreaterThan(tops[0]!);
});

it("draws a histogram from 0, between its edges", () => {
  const series = [{ name: "numbers", as: "bars", x: [0, 1, 2], y: [5, 10] } as const];
  const histogram = { title: "h", x: { label: "value" }, y: { label: "numbers" }, series };
  const heights = [...draw(histogram).matchAll(/<rect[^>]* height="([\d.]+)"/g)].map(([, h]) => Number(h));
  expect(heights[1]! / heights[0]!).toBeCloseTo(2, 1);
  expect(readAt(histogram, 0.9).text).toBe("value 1.5: numbers 10");
});

it("draws points with a color and a label of their own, in a range that is given", () => {
  const series = [{ name: "Adam", as: "points", x: [1], y: [1], color: "hsl(30 75% 38%)", labels: ["Adam"] } as const];
  const points: Chart = { title: "Race", x: { label: "x", range: [-2, 2] }, y: { label: "y", range: [0, 4] }, series };
  const { left, top, width, height } = boxOf(points);
  const svg = draw(points);
  const [x, y] = [left + 0.75 * width, top + 0.75 * height].map((each) => Number(each.toFixed(1)));
  expect(svg).toContain(`translate(${x} ${y})`);
  expect(svg).toContain('fill="hsl(30 75% 38%)"');
  expect(textsOf(svg)).toContain("Adam");
  expect(svg).not.toContain('text-anchor="end" font-weight');
  const near = draw({ ...points, series: [{ ...series[0]!, x: [1.99], labels: ["SGD, momentum"] }] });
  expect(near).toContain('text-anchor="end" font-weight'); // it would leave the picture
});

it("keeps the extremes of a line that has more points than pixels", () => {
  const y = Array.from({ length: 100_000 }, (_, i) => (i === 54_321 ? 9 : Math.sin(i)));
  const svg = draw({ ...chart, series: [{ name: "long", y }] });
  expect(svg.length).toBeLessThan(30_000);
  const [, points = ""] = /points="([^"]*)"/.exec(svg)!;
  const highest = Math.min(...[...points.matchAll(/,([\d.]+)/g)].map(([, height]) => Number(height)));
  expect(highest).toBeLessThan(60); // the one 9 stands far above the others
});

it("has ticks where told", () => {
  const svg = draw({ ...chart, x: { label: "epoch", ticks: [1, 4] } });
  expect(textsOf(svg).slice(0, 3)).toEqual(["1", "4", "1"]);
});

it("says that a logarithmic scale is one, and leaves out what it cannot show", () => {
  const y = { label: "loss", log: true };
  const svg = draw({ ...chart, y, series: [{ name: "loss", y: [100, 0, 1, 0.01] }] });
  expect(textsOf(svg)).toEqual(expect.arrayContaining(["loss (log scale)", "0.01", "0.1", "1", "10", "100"]));
  expect(svg.match(/<polyline/g)).toHaveLength(2);
});

it.each<[string, readonly number[]]>([
  ["no value", []],
  ["no finite value", [Number.NaN, Infinity]],
  ["one value", [3]],
  ["equal values", [2, 2, 2]],
  ["zeros", [0, 0]],
])("draws %s", (_, y) => {
  for (const log of [false, true]) {
    const svg = draw({ ...chart, x: { label: "step", log }, y: { label: "loss", log }, series: [{ name: "loss", y }] });
    expect(svg).not.toMatch(/NaN|Infinity/);
    expect(textsOf(svg).length).toBeGreaterThan(4);
  }
});

it("reads the values at a place", () => {
  expect(placesOf(chart)).toBe(4);
  expect(readAt(chart, 0.34)).toEqual({ share: 1 / 3, text: "step 2: loss 3" });
  expect(readAt({ ...chart, series: [] }, 0.5).text).toBe("no values yet");
  expect(describe({ ...chart, series: [{ name: "loss", y: [] }] })).toContain("loss: no values yet");
  expect(describe({ ...chart, y: { label: "accuracy", percent: true } })).toContain("from 400 % to 100 %");
});

it("stacks curves by name, shares apart", () => {
  const charts = chartsOf({ loss: [1, 2], val_accuracy: [0.5, 0.6] }, "both");
  expect(charts.map(({ y }) => y.label)).toEqual(["loss", "accuracy"]);
  expect(stacked(charts).match(/<svg/g)).toHaveLength(3);
  expect(chartsOf({ a: [1], b: [2] }, "t")[0]!.y.label).toBe("value");
});

it("takes the axes, the places and the size of a picture", () => {
  const axes = { x: { label: "epoch", log: true }, y: { label: "nats", min: 0 }, at: [10, 20] };
  const charts = chartsOf({ loss: [1, 2], accuracy: [0.5, 0.6] }, "both", axes, { width: 300, height: 500 });
  expect(charts.map(({ x, y }) => ({ x, y }))).toEqual([
    { x: axes.x, y: axes.y },
    { x: axes.x, y: { label: "accuracy", min: 0, percent: true } },
  ]);
  expect(charts.map(({ series, width, height }) => [series[0]!.x, width, height])).toEqual([
    [axes.at, 300, 250],
    [axes.at, 300, 250],
  ]);
});

it("writes numbers that can be read", () => {
  const numbers = [0, 0.1 + 0.2, 1234567, 12345678, 0.00001, 3e-7, -5];
  expect(numbers.map(format)).toEqual(["0", "0.3", "1,234,567", "1.23e7", "1e-5", "3e-7", "-5"]);
  expect(sampleLine({ name: "a", y: [] })).toContain("<polyline");
  expect(sampleLine({ name: "a", y: [], as: "bars" })).toContain("<rect");
  expect(sampleLine({ name: "b", y: [] }, 1)).not.toBe(sampleLine({ name: "b", y: [] }, 0));
});

it("writes no number over another, in any range and width", () => {
  const drawn = fc.record({ first: fc.integer({ min: -99, max: 99 }), exponent: fc.integer({ min: -6, max: 9 }) });
  fc.assert(
    fc.property(drawn, fc.integer({ min: 150, max: 900 }), ({ first, exponent }, width) => {
      const x = { label: "x", range: [first * 10 ** exponent, (first + 1) * 10 ** exponent] as const };
      const svg = draw({ ...chart, x, width, series: [{ name: "a", y: [1, 2], x: x.range }] });
      const labels = [...svg.matchAll(/<text x="([-\d.]+)" [^>]*text-anchor="middle" class="tick">([^<]*)</g)];
      expect(labels.length).toBeGreaterThan(0);
      const ends = labels.map(([, at, { length } = ""]) => [Number(at) - 3.35 * length, Number(at) + 3.35 * length]);
      for (const [i, [begin]] of ends.slice(1).entries()) expect(begin).toBeGreaterThanOrEqual(ends[i]![1]!);
    }),
    { seed: 1, numRuns: 100 },
  );
});

it("writes any text as text", () => {
  expect(draw({ ...chart, title: '"a" <b> & c' })).toContain('aria-label="&quot;a&quot; &lt;b> &amp; c');
});

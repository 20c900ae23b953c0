/** `npm run pictures`: draws a table of the bench as bars, `benchmark-light.svg` and `benchmark-dark.svg` of the README. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isPeer, type Report } from "./report";

const THEMES = {
  light: { text: "#1f2328", ours: "#0969da", others: "#afb8c1" },
  dark: { text: "#e6edf3", ours: "#4493f8", others: "#57606a" },
} as const;

const OURS = ["opt cpu", "opt wasm"];

/** Pixels. */
const [WIDTH, NAME_WIDTH, ROW, TOP] = [720, 230, 30, 64];

function drawBenchmark(folder: string, results: string): void {
  const { tables, machine, node }: Report = JSON.parse(readFileSync(results, "utf8"));
  const { title, measurements } = tables[0]!;
  const rows = measurements
    .filter((each) => OURS.includes(each.name) || isPeer(each))
    .sort((a, b) => a.median - b.median);
  for (const [theme, colors] of Object.entries(THEMES)) {
    const longest = rows.at(-1)!.median;
    const bars = rows.map(({ name, median }, i) => {
      const y = TOP + i * ROW;
      // A square root keeps the shortest bars visible.
      const length = Math.max(2, (WIDTH - NAME_WIDTH - 100) * Math.sqrt(median / longest));
      const fill = OURS.includes(name) ? colors.ours : colors.others;
      return `<text x="${NAME_WIDTH - 10}" y="${y + 15}" text-anchor="end">${escaped(name)}</text>
<rect x="${NAME_WIDTH}" y="${y}" width="${length.toFixed(1)}" height="${ROW - 10}" rx="3" fill="${fill}"/>
<text x="${NAME_WIDTH + length + 8}" y="${y + 15}">${median.toPrecision(3)} ms</text>`;
    });
    const height = TOP + rows.length * ROW + 20;
    const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="system-ui, sans-serif" font-size="14" fill="${colors.text}">
<title>${escaped(title)}</title>
<text x="0" y="20" font-size="17" font-weight="600">${escaped(title)}: milliseconds, less is better</text>
<text x="0" y="42" font-size="12" opacity="0.75">${escaped(machine.replace(/, L1.*/, ""))}, Node ${node}. Bars are drawn on a square root scale.</text>
${bars.join("\n")}
</svg>
`;
    writeFileSync(join(folder, `benchmark-${theme}.svg`), svg);
  }
}

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

drawBenchmark("docs/pictures", "runs/pictures/benchmark.json");

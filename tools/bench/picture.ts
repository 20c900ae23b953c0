/** `npm run pictures`: draws a table of the bench as bars, `benchmark-light.svg` and `benchmark-dark.svg` of the README. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { draw, type Series } from "@opt/train/chart";
import { isPeer, type Report } from "./report";

const OURS = ["opt cpu", "opt wasm"];
const ROW = 30;

function drawBenchmark(folder: string, results: string): void {
  const { tables, machine, node }: Report = JSON.parse(readFileSync(results, "utf8"));
  const { title, measurements } = tables[0]!;
  const rows = measurements
    .filter((each) => OURS.includes(each.name) || isPeer(each))
    .sort((a, b) => a.median - b.median);
  const [{ median: fastest } = { median: 1 }] = rows;
  const bars = (name: string, color: Series["color"] & {}, isShown: (name: string) => boolean): Series => {
    const own = rows.flatMap(({ name, median }, row) => (isShown(name) ? [{ row, median }] : []));
    return {
      ...{ name, color, as: "bars", y: own.map(({ row }) => row), x: own.map(({ median }) => median) },
      labels: own.map(
        ({ median }) => `${median.toPrecision(3)} ms, ${Number((median / fastest).toPrecision(2))} times`,
      ),
    };
  };
  for (const scheme of ["light", "dark"] as const) {
    const svg = draw({
      title: `${title}: milliseconds, less is better`,
      heading: `${machine.replace(/, L1.*/, "")}, Node ${node}. "Times" compares with the fastest.`,
      ...{ width: 720, height: 110 + rows.length * ROW, scheme, legend: false },
      x: { label: "milliseconds a step" },
      y: { label: "", rows: rows.map(({ name }) => name) },
      series: [bars("Opt", 0, (name) => OURS.includes(name)), bars("others", "faint", (name) => !OURS.includes(name))],
    });
    writeFileSync(join(folder, `benchmark-${scheme}.svg`), `${svg}\n`);
  }
}

const [folder = "docs/pictures", results = "runs/pictures/benchmark.json"] = process.argv.slice(2);
drawBenchmark(folder, results);

/** The benchmark's tables: times as ratios to the fastest of our devices, or work per second as ratios to PyTorch. */
import type { Rate } from "./benchmark";
import type { Measurement, WorkReport } from "./measure";

export interface Table extends WorkReport<object> {
  readonly title: string;
  readonly rate: Rate | undefined;
}

export interface Report {
  readonly machine: string;
  readonly node: string;
  readonly date: string;
  readonly tables: Table[];
}

export function markdown({ machine, node, date, tables }: Report): string {
  const lines = [
    `Node ${node}, ${date}, ${machine}. Medians (quartiles). Milliseconds per step: "x ours" is how many times the fastest Opt device's, "x limit" how many times the memory limit; work per second: "x PyTorch" is how many times PyTorch's fastest.`,
    "",
  ];
  for (const { title, rate, measurements, absent } of tables) {
    lines.push(`### ${title}`, "");
    lines.push(...(rate === undefined ? timeRows(measurements) : rateRows(measurements, rate)), "");
    const reasons = absent.map(({ name, reason }) => `${name} (${reason})`);
    if (reasons.length > 0) lines.push(`Absent: ${reasons.join("; ")}.`, "");
  }
  return lines.join("\n");
}

function timeRows(measurements: readonly Measurement[]): string[] {
  const ours = leastTime(measurements, "opt ");
  const limit = leastTime(measurements, "memory limit");
  return [
    "| | ms | | x ours | x limit |",
    "|---|---:|---:|---:|---:|",
    ...measurements.map(
      ({ name, median, quartiles: [lower, upper] }) =>
        `| ${name} | ${digits(median)} | ${digits(lower)} – ${digits(upper)} | ${digits(median / ours)} | ${digits(median / limit)} |`,
    ),
  ];
}

function rateRows(measurements: readonly Measurement[], { unit, perStep }: Rate): string[] {
  const torch = leastTime(measurements, "PyTorch");
  const rate = (milliseconds: number) => digits((1000 * perStep) / milliseconds);
  return [
    `| | ${unit} | | x PyTorch |`,
    "|---|---:|---:|---:|",
    ...measurements.map(
      ({ name, median, quartiles: [lower, upper] }) =>
        `| ${name} | ${rate(median)} | ${rate(upper)} – ${rate(lower)} | ${digits(torch / median)} |`,
    ),
  ];
}

function leastTime(measurements: readonly Measurement[], prefix: string): number {
  return Math.min(...measurements.filter(({ name }) => name.startsWith(prefix)).map(({ median }) => median));
}

/** Three significant digits, in plain notation; nothing where there was nothing to compare with. */
function digits(value: number): string {
  if (!Number.isFinite(value) || value === 0) return "";
  return value < 1000 ? value.toPrecision(3) : Number(value.toPrecision(3)).toLocaleString("en-US");
}

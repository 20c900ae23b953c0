/** The benchmark's tables: times as ratios to the fastest of our devices, or work per second as ratios to the fastest peer. */
import type { Rate } from "./contender";
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
    `Node ${node}, ${date}, ${machine}. Medians (quartiles). Milliseconds per step: "x ours" is how many times the fastest Opt device's, "x limit" how many times the memory limit; work per second: "x peer" is how many times the fastest peer's.`,
    "",
  ];
  for (const { title, rate, measurements, absent } of tables) {
    lines.push(`### ${title}`, "");
    lines.push(...(rate === undefined ? timeRows(measurements) : rateRows(measurements, rate)), "");
    lines.push(...costRows(measurements));
    lines.push(peersLine(measurements), "");
    const reasons = absent.map(({ name, reason }) => `${name} (${reason})`);
    if (reasons.length > 0) lines.push(`Absent: ${reasons.join("; ")}.`, "");
  }
  return lines.join("\n");
}

function timeRows(measurements: readonly Measurement[]): string[] {
  const ours = fastest(measurements, isOurs)?.median ?? Number.NaN;
  const limit = fastest(measurements, ({ name }) => name === "memory limit")?.median ?? Number.NaN;
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
  const peer = fastest(measurements, isPeer)?.median ?? Number.NaN;
  const rate = (milliseconds: number) => digits((1000 * perStep) / milliseconds);
  return [
    `| | ${unit} | | x peer |`,
    "|---|---:|---:|---:|",
    ...measurements.map(
      ({ name, median, quartiles: [lower, upper] }) =>
        `| ${name} | ${rate(median)} | ${rate(upper)} – ${rate(lower)} | ${digits(peer / median)} |`,
    ),
  ];
}

/** What a program waits for and needs, where it was measured. */
function costRows(measurements: readonly Measurement[]): string[] {
  const rows = measurements.flatMap(({ name, costs }) => {
    if (costs === undefined) return [];
    const { firstStep, coldStart, peakBytes } = costs;
    return [`| ${name} | ${digits(firstStep)} | ${digits(coldStart)} | ${digits(peakBytes / 2 ** 20)} |`];
  });
  if (rows.length === 0) return [];
  return [
    "| | first step, ms | from the process' start to its end, ms | peak, MiB |",
    "|---|---:|---:|---:|",
    ...rows,
    "",
  ];
}

/** Which peers ran, and our speed as a ratio to the fastest of exactly these. */
function peersLine(measurements: readonly Measurement[]): string {
  const peer = fastest(measurements, isPeer);
  if (peer === undefined) return "No peer ran.";
  const ran = measurements.filter(isPeer).map(({ name }) => name);
  const ours = fastest(measurements, isOurs);
  const ratio = ours === undefined ? "" : ` ${ours.name} is ${digits(peer.median / ours.median)} times as fast.`;
  return `Peers that ran: ${ran.join(", ")}. The fastest of these is ${peer.name}.${ratio}`;
}

const isOurs = ({ name }: Measurement) => name.startsWith("opt ");
/** Other libraries by themselves, without an optimizer of ours. */
export const isPeer = ({ name }: Measurement) => /^(PyTorch|JAX|TF\.js|jax-js)/.test(name) && !name.includes(", opt ");

function fastest(
  measurements: readonly Measurement[],
  counts: (measurement: Measurement) => boolean,
): Measurement | undefined {
  return measurements.filter(counts).sort((a, b) => a.median - b.median)[0];
}

/** Three significant digits, in plain notation; nothing where there was nothing to compare with. */
function digits(value: number): string {
  if (!Number.isFinite(value) || value === 0) return "";
  return value < 1000 ? value.toPrecision(3) : Number(value.toPrecision(3)).toLocaleString("en-US");
}

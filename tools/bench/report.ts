/** The benchmark's table: times, and each time as a ratio to the fastest of our devices. */
import type { WorkReport } from "./measure";

export interface Report {
  readonly node: string;
  readonly date: string;
  readonly works: WorkReport[];
}

export function markdown({ node, date, works }: Report): string {
  const lines = [
    `Optimizer steps, Node ${node}, ${date}. Milliseconds per step: median (quartiles). "x ours": how many times the fastest Opt device.`,
    "",
  ];
  for (const { work, measurements, absent } of works) {
    const ours = Math.min(...measurements.filter(({ name }) => name.startsWith("opt ")).map(({ median }) => median));
    const elements = (work.tensors * work.size).toLocaleString("en-US");
    lines.push(
      `### ${work.optimizer}, ${work.tensors === 1 ? elements : `${work.tensors} tensors x ${work.size}`} parameters`,
      "",
    );
    lines.push("| | ms | | x ours |", "|---|---:|---:|---:|");
    for (const { name, median, quartiles } of measurements) {
      lines.push(
        `| ${name} | ${digits(median)} | ${digits(quartiles[0])} – ${digits(quartiles[1])} | ${digits(median / ours)} |`,
      );
    }
    lines.push("");
    const reasons = absent.map(({ name, reason }) => `${name} (${reason})`);
    if (reasons.length > 0) lines.push(`Absent: ${reasons.join("; ")}.`, "");
  }
  return lines.join("\n");
}

function digits(value: number): string {
  return Number.isFinite(value) ? value.toPrecision(3) : "";
}

/** What people read of the results of commands. */
import type { DiffResult } from "../compare/diff";
import type { Explanation } from "../explain/explain";
import { naturally } from "../layout/natural-order";
import type { LedgerDifference, LedgerLine } from "../ledger/compare";
import type { Inspection } from "../read/inspect";
import type { VerifyResult } from "../read/verify";
import type { CleanResult } from "../save/step/clean";
import type { PruneResult } from "../save/step/prune";
import { formatBytes, table } from "./output";
import { renameFor } from "./rename-for";

export function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, " ");
}

export function showInspection(inspection: Inspection): string {
  const {
    format,
    path,
    step,
    steps,
    world,
    mesh,
    files,
    tensors,
    values,
    unreadable = {},
    skipped = [],
    bytes,
  } = inspection;
  const facts: [string, string][] = [
    ["format", format],
    ["path", path],
  ];
  if (step !== undefined)
    facts.push(["step", steps && steps.length > 1 ? `${step} of ${steps.join(", ")}` : `${step}`]);
  if (world !== undefined && mesh)
    facts.push(["ranks", `${world}, mesh ${mesh.axes.map((axis, i) => `${axis} ${mesh.shape[i]}`).join(" x ")}`]);
  if (files) facts.push(["files", `${files.length}`]);
  facts.push(["tensors", `${tensors.length}, ${formatBytes(bytes)}`]);
  const width = Math.max(...facts.map(([name]) => name.length));
  const head = facts.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join("\n");
  const rows = tensors
    .toSorted((a, b) => naturally(a.name, b.name))
    .map(({ name, dtype, shape, bytes: size, role, follows, boxes }) => {
      const what = follows === undefined ? (role ?? "") : `${role} of ${follows}`;
      return [name, dtype, `[${shape.join(", ")}]`, formatBytes(size), `${boxes}`, what];
    });
  const body =
    rows.length === 0 ? "" : `\n\n${table(["tensor", "dtype", "shape", "size", "boxes", "role"], rows, [3, 4])}`;
  const plain = Object.entries(values).map(([name, value]) => `${name} = ${abridged(JSON.stringify(value))}`);
  const unread = Object.entries(unreadable).map(([name, reason]) => `\n\n${name} cannot be read: ${reason}`);
  const foreign = skipped.map(({ name, what }) => `${name || "the outermost object"}: ${what}`);
  if (foreign.length > 0) unread.push(`\n\nskipped, because they are no data\n  ${foreign.join("\n  ")}`);
  return `${head}${body}${unread.join("")}${plain.length === 0 ? "" : `\n\nvalues\n  ${plain.join("\n  ")}`}`;
}

function abridged(text: string): string {
  return text.length <= 100 ? text : `${text.slice(0, 97)}...`;
}

export function showVerified({ path, tensors, bytes, unverified }: VerifyResult): string {
  const doubt =
    unverified.length === 0 ? "" : ` (${unverified.length} tensors have no checksum: only their structure was checked)`;
  return `${path}: whole, ${tensors} tensors, ${formatBytes(bytes)} read${doubt}`;
}

export function showCleaned({ removed, kept }: CleanResult, dryRun: boolean): string {
  const gone = removed.map((path) => `${dryRun ? "would remove" : "removed"} ${path}`);
  const stays = kept.map(
    ({ path, owner }) =>
      `kept ${path}: ${owner === "alive" ? "being written" : "its process cannot be seen from here"}`,
  );
  return [...gone, ...stays].join("\n") || "nothing to remove";
}

export function showPruned({ removed, kept }: PruneResult, dryRun: boolean): string {
  const gone =
    removed.length === 0 ? "nothing to remove" : `${dryRun ? "would remove" : "removed"} ${removed.join(", ")}`;
  return `${gone}\nkept ${kept.join(", ")}`;
}

export function showProblems({ problems }: VerifyResult): string[] {
  return problems.map(({ subject, file, begin, end, problem }) =>
    oneLine(`${subject}: ${file} bytes ${begin} to ${end}: ${problem}`),
  );
}

export function showLedger(lines: readonly LedgerLine[]): string {
  const rows = lines.flatMap(({ step, tensors }) =>
    Object.entries(tensors).map(([name, sum]) => [`${step}`, name, sum] as const),
  );
  return table(["step", "tensor", "crc32"], rows, [0]);
}

export function showLedgerDifference({ steps, first }: LedgerDifference): string {
  if (first !== null) return `step ${first.step} differs: ${first.tensors.join(", ")}`;
  return steps === 0 ? "no step is in both" : `equal: ${steps} steps`;
}

export function showDiff({ equal, tensors, differences, values }: DiffResult): string {
  const note = values.length === 0 ? "" : `\nplain values that differ (not counted): ${values.length}, see --json`;
  if (equal) return `equal: ${tensors} tensors${note}`;
  const lines = differences.map(({ name, kind, a, b, count, elements, first, maxAbs }) => {
    if (kind === "values")
      return `${name}: ${count} of ${elements} elements differ, the first is number ${first}, largest distance ${maxAbs}`;
    return a === undefined ? `${name}: ${kind}` : `${name}: ${kind} ${a} and ${b}`;
  });
  const rename = renameFor(differences, tensors);
  const hint = rename === undefined ? "" : `\nno name is in both: try --rename '${rename}'`;
  return `${lines.join("\n")}${note}${hint}`;
}

export function showExplanation({ path, format, parameters, stateful, findings }: Explanation): string {
  const head = `${path}: ${format}, ${parameters} parameters, ${stateful} with optimizer state`;
  return [head, ...findings.map(({ text }) => oneLine(text))].join("\n");
}

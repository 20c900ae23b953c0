/** The page of the leaderboard and the rows that a page repeats, written from the stored rows. */
import { fileURLToPath } from "node:url";
import type { Repeatable } from "../../../docs/.vitepress/demos/leaderboard-messages";
import { type Cell, firstRow } from "./cells";
import { type Line, rankedLines } from "./lines";
import { chosenRate, median, RATES, SEARCH_SEEDS } from "./plan";
import { TARGETS } from "./targets";
import { type TaskName, tasks } from "./tasks";
import { EVERY } from "./train";

const docs = new URL("../../../docs/", import.meta.url);
export const PAGE_FILE = fileURLToPath(new URL("leaderboard.md", docs));
export const REPEATABLE_FILE = fileURLToPath(new URL(".vitepress/demos/leaderboard.jsonl", docs));

export function repeatableOf(cells: readonly Cell[]): string {
  const rows = cells.map(({ rows }) => firstRow(rows)).filter((row) => row !== undefined);
  const lines = rows.map(({ task, optimizer, lr, checksum }) =>
    JSON.stringify({ task, title: tasks[task].title, optimizer, lr, checksum } satisfies Repeatable),
  );
  return `${lines.join("\n")}\n`;
}

const digits = (value: number) => (value < 1e-3 && value > 0 ? value.toExponential(1) : value.toPrecision(3));

function bytesText(bytes: number): string {
  return bytes < 1000 ? `${bytes} B` : `${Math.round(bytes / 1000)} kB`;
}

function tableLine(line: Line): string {
  const { optimizer, lr, seeds, steps, reached, best, first } = line;
  const share = reached === seeds ? "" : ` (${reached} of ${seeds})`;
  const count = Number.isFinite(steps) ? String(steps) : "not reached";
  const cells = [
    optimizer,
    lr,
    `${count}${share}`,
    digits(median(best)),
    `${digits(best[0]!)} to ${digits(best.at(-1)!)}`,
    digits(first.milliseconds),
    bytesText(first.stateBytes),
    `\`${first.checksum}\``,
  ];
  return `| ${cells.join(" | ")} |`;
}

/** Optimizers without a line in a table, with the reason. */
function failures(cells: readonly Cell[]): string[] {
  return cells.flatMap(({ of: { optimizer }, rows }) => {
    const error = rows.find((row) => row.error !== undefined)?.error;
    if (error !== undefined) return [`- ${optimizer}: \`${error}\``];
    return chosenRate(rows) === null ? [`- ${optimizer}: it diverged at every learning rate.`] : [];
  });
}

function sectionOf(name: TaskName, cells: readonly Cell[]): string {
  const { title, about, budget } = tasks[name];
  const lines = rankedLines(cells);
  const failed = failures(cells);
  return `## ${title}

${about} A run has ${budget} gradients. The target is a loss of ${TARGETS[name]}.

| optimizer | learning rate | steps to the target | best loss | lowest to highest | ms a step | state | checksum |
|---|---:|---:|---:|---:|---:|---:|---|
${lines.map(tableLine).join("\n")}
${failed.length === 0 ? "" : `\nWithout a line:\n\n${failed.join("\n")}\n`}`;
}

/** The page. */
export function pageOf(cells: readonly Cell[]): string {
  const names = Object.keys(tasks) as TaskName[];
  const rows = cells.flatMap((cell) => cell.rows);
  const counts = rankedLines(cells).map(({ seeds }) => seeds);
  const [fewest, most] = [Math.min(...counts), Math.max(...counts)];
  const machines = [...new Set(rows.map(({ machine }) => machine))];
  return `---
title: Leaderboard
sidebar: false
aside: false
---

<!-- Written by \`npm run leaderboard -- --write\`. -->
<script setup>
import Leaderboard from "./.vitepress/theme/Leaderboard.vue";
</script>

# Leaderboard

${names.length} tasks and ${new Set(cells.map(({ of }) => of.optimizer)).size} optimizers, trained to the same bits on every exact device. Repeat a row in this page:

<Leaderboard />

[Which optimizer?](guides/which-optimizer.md) has the answers in ten lines.

## How it is measured

- **Optimizers** are all classes of \`@opt/optim\` with their default options, and some with a modification or a wrapper.
- **Learning rates** are of one grid: ${RATES.join(", ")}. Every second one trains with seed 0, then those beside the best. Of the best two, the median of the best losses of ${SEARCH_SEEDS} seeds decides.
- **Seeds** are ${fewest === most ? most : `${fewest} to ${most}`} at the chosen rate. A seed draws the first weights and the batches. The best loss is the median of the lowest losses.
- **A step** is one gradient. \`LBFGS\`, \`SAM\` and \`Sophia\`'s estimates take further gradients, and each counts. Losses are looked at every ${EVERY} steps.
- **Classes for matrices alone**, as Muon, step the matrices inside of the model. AdamW steps the rest at a learning rate of 0.01. \`SparseAdam\` steps the tables, and AdamW the rest.
- **Checksums** are of the last weights of seed 0: the exclusive or of each tensor's CRC-32.
- **Times** are the processor's, on one thread of ${machines.join(" and ")}: forward, backward and step of seed 0. Other programs ran beside it, so compare only large differences.
- **Failures** are below each table: errors, and divergence at every rate. A newer optimizer is missing until somebody runs the command.

Small models and short runs: an order here is a hint for large ones, and no proof.

${names
  .map((name) =>
    sectionOf(
      name,
      cells.filter(({ of }) => of.task === name),
    ),
  )
  .join("\n")}
## Repeat it

\`\`\`sh
npm run leaderboard                               # trains what is not stored, and goes on where it was stopped
npm run leaderboard -- --repeat --device wasm     # compares the checksums of all rows on another device
npm run leaderboard -- --task poisson --optimizer "Adam;SOAP"
npm run leaderboard -- --write                    # writes this page
\`\`\`
`;
}

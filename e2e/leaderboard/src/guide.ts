/** The page "Which optimizer?": answers from the leaderboard's own numbers. */
import { fileURLToPath } from "node:url";
import type { Cell } from "./cells";
import { type Line, rankedLines } from "./lines";
import { median } from "./plan";
import { type TaskName, tasks } from "./tasks";

export const GUIDE_FILE = fileURLToPath(new URL("../../../docs/guides/which-optimizer.md", import.meta.url));

/** What every other optimizer is compared with. */
const USUAL = "AdamW";
const NAMES = Object.keys(tasks) as TaskName[];

const stepsText = ({ steps }: Line) => (Number.isFinite(steps) ? `${steps} steps` : "not reached");
const withSteps = (lines: readonly Line[]) =>
  lines.map((line) => `**${line.optimizer}** (${stepsText(line)})`).join(", ");

/** One optimizer on every task. */
class Results {
  readonly #lines: Readonly<Record<TaskName, readonly Line[]>>;

  constructor(cells: readonly Cell[]) {
    const own = (name: TaskName) => rankedLines(cells.filter(({ of }) => of.task === name));
    this.#lines = Object.fromEntries(NAMES.map((name) => [name, own(name)])) as unknown as Record<
      TaskName,
      readonly Line[]
    >;
  }

  on(task: TaskName): readonly Line[] {
    return this.#lines[task];
  }

  of(optimizer: string, task: TaskName): Line | undefined {
    return this.#lines[task].find((line) => line.optimizer === optimizer);
  }

  /** Those with the best mean rank over all tasks. */
  get allRound(): readonly (readonly [optimizer: string, rank: number])[] {
    const names = this.#lines[NAMES[0]!].map(({ optimizer }) => optimizer);
    const everywhere = names.filter((name) => NAMES.every((task) => this.of(name, task) !== undefined));
    const rankOf = (name: string) => {
      const ranks = NAMES.map((task) => 1 + this.#lines[task].findIndex(({ optimizer }) => optimizer === name));
      return ranks.reduce((sum, rank) => sum + rank, 0) / NAMES.length;
    };
    return everywhere.map((name) => [name, rankOf(name)] as const).sort(([, a], [, b]) => a - b);
  }
}

function bestOn(results: Results, task: TaskName): string {
  const usual = results.of(USUAL, task);
  const best = withSteps(results.on(task).slice(0, 3));
  return `${best}. ${USUAL}: ${usual === undefined ? "no run" : stepsText(usual)}.`;
}

/** Those that reach the target with less state than the usual one, the smallest first. */
function smallest(results: Results, task: TaskName): string {
  const usual = results.of(USUAL, task)?.first.stateBytes ?? 0;
  const small = results
    .on(task)
    .filter(({ steps, first }) => Number.isFinite(steps) && first.stateBytes < usual)
    .sort((a, b) => a.first.stateBytes - b.first.stateBytes)
    .slice(0, 3)
    .map(({ optimizer, first }) => `**${optimizer}** (${Math.round((100 * first.stateBytes) / usual)} %)`);
  return `${small.join(", ")} of ${USUAL}'s bytes on the GPT.`;
}

const everywhere = (results: Results, optimizer: string) =>
  NAMES.map((task) => {
    const line = results.of(optimizer, task);
    return line === undefined ? "no run" : Number.isFinite(line.steps) ? `${line.steps}` : "-";
  }).join(", ");

export function guideOf(cells: readonly Cell[]): string {
  const results = new Results(cells);
  const [first, second, third] = results.allRound;
  const rank = ([name, value]: readonly [string, number]) => `**${name}** (${value.toFixed(1)})`;
  const usualRank = results.allRound.find(([name]) => name === USUAL)?.[1] ?? Number.NaN;
  const usualRates = NAMES.map((task) => results.of(USUAL, task)?.lr ?? "none").join(", ");
  const seeds = median(NAMES.flatMap((task) => results.on(task).map((line) => line.seeds)));
  return `---
title: Which optimizer?
aside: false
pageClass: wide
---

<!-- Written by \`npm run leaderboard -- --write\`. -->

# Which optimizer?

AdamW is a safe start: its best learning rates here are ${usualRates}. The answers below are numbers of the [leaderboard](../leaderboard.md), where you repeat each of them.

| you want | take |
|---|---|
| one for all tasks | By mean rank: ${[first!, second!, third!].map(rank).join(", ")}. ${USUAL} has ${usualRank.toFixed(1)}. |
| a transformer | ${bestOn(results, "sonnets")} |
| a convolutional network | ${bestOn(results, "digits")} |
| a smooth loss of all data, as of physics | ${bestOn(results, "poisson")} |
| tables of embeddings | ${bestOn(results, "clicks")} |
| little memory | ${smallest(results, "sonnets")} |
| no learning rate to choose | **Prodigy** with its default of 1. Steps on the four tasks: ${everywhere(results, "Prodigy")}. |
| no schedule | **ScheduleFreeAdamW**. Steps: ${everywhere(results, "ScheduleFreeAdamW")}. ${USUAL}: ${everywhere(results, USUAL)}. |
| more out of AdamW | \`cautious: true\`. Steps: ${everywhere(results, "AdamW, cautious")}. |

\`-\` means that most runs do not reach the target. Numbers are the median of ${seeds} ${seeds === 1 ? "seed" : "seeds"}, at the best learning rate of one grid.

- Muon trains only matrices. Give it those inside of your model by [combine](optimizers.md#combine-two-optimizers).
- SOAP, Shampoo and Kron cost more time a step. The table has it, with their memory.
- These models are small, and the runs short. Try two or three of the best on your own model.
`;
}

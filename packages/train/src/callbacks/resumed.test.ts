// A run that was stopped and resumed leaves what a run leaves that was never stopped: of each callback its files, lines and records.
import { readdirSync, readFileSync } from "node:fs";
import { AdamW } from "@opt/adam-amsgrad";
import { inspectCheckpoint, loadCheckpoint, memoryFileSystem } from "@opt/checkpoint";
import { init } from "@opt/core";
import { beforeAll, describe, expect, it, vi } from "vitest";
import { summariesIn } from "../../testing/event-files";
import { type Batch, begin, dataset, optionsOf, words } from "../../testing/runs";
import { fit } from "../fit";
import type { Callback, History } from "../fit/events";
import { accuracy } from "../metrics/metrics";
import { checkpoints } from "./checkpoints";
import { csv } from "./csv";
import { earlyStopping } from "./early-stopping";
import { logger } from "./logger";
import { progress } from "./progress";
import { tensorBoard } from "./tensor-board";

/** What outlives a process: a disk, and what was printed or sent elsewhere. */
interface Outside {
  readonly fileSystem: ReturnType<typeof memoryFileSystem>;
  readonly sent: unknown[];
}

interface Row {
  readonly callback: (outside: Outside) => Callback;
  readonly left: (outside: Outside) => unknown;
}

const sent = ({ sent }: Outside) => sent;

const CALLBACKS: Readonly<Record<string, Row>> = {
  csv: {
    callback: ({ fileSystem }) => csv("a.csv", { fileSystem }),
    left: async ({ fileSystem }) => (await fileSystem.blob("a.csv")).text(),
  },
  logger: { callback: ({ sent }) => logger((record) => sent.push(record), { every: 1 }), left: sent },
  "logger of every second step": {
    callback: ({ sent }) => logger((record) => sent.push(record), { every: 2 }),
    left: sent,
  },
  progress: { callback: ({ sent }) => progress({ stream: { write: (line) => sent.push(line) } }), left: sent },
  tensorBoard: {
    callback: ({ fileSystem }) => tensorBoard("board", { fileSystem }),
    left: ({ fileSystem }) => summariesIn("board", fileSystem),
  },
  "tensorBoard of every second step, with histograms": {
    callback: ({ fileSystem }) => tensorBoard("histograms", { every: 2, histograms: true, fileSystem }),
    left: ({ fileSystem }) => summariesIn("histograms", fileSystem),
  },
  checkpoints: {
    callback: ({ fileSystem }) =>
      checkpoints("run", { every: 1, keep: { last: 3, best: 1 }, monitor: "loss", fileSystem }),
    left: async ({ fileSystem }) => {
      const { steps } = await inspectCheckpoint("run", { fileSystem });
      const { tensors, values } = await loadCheckpoint("run", { fileSystem });
      const bytes = Object.entries(tensors).map(async ([name, x]) => [name, String(await x.bytes())]);
      return { steps, values, tensors: Object.fromEntries(await Promise.all(bytes)) };
    },
  },
  earlyStopping: {
    callback: () => earlyStopping({ monitor: "loss", mode: "max", patience: 2 }),
    left: () => lines.at(-1),
  },
  "one of your own that has a state": {
    callback: ({ sent }) => {
      let steps = 0;
      return {
        name: "counts",
        onStepEnd: () => void steps++,
        onEpochEnd: () => void sent.push(steps),
        stateDict: () => ({ steps }),
        loadStateDict: (state) => {
          ({ steps } = state as { steps: number });
        },
      };
    },
    left: sent,
  },
};

const lines: string[] = []; // of stderr

/** What each callback has left of a run in lives: each but the last is stopped after a step, and each but the first resumes the one before. */
async function leftBy(stops: readonly number[]): Promise<Readonly<Record<string, unknown>>> {
  const fileSystem = memoryFileSystem();
  const rows = Object.entries(CALLBACKS).map(([name, row]) => ({ name, row, outside: { fileSystem, sent: [] } }));
  let [trained, history] = [[] as string[], undefined as History | undefined];
  for (const [life, stop] of [...stops, Number.POSITIVE_INFINITY].entries()) {
    const run = begin("mlp", (model) => new AdamW(model.namedParameters(), { lr: 0.02 }), {});
    const controller = new AbortController();
    const stopping: Callback = { onStepEnd: ({ step }) => step === stop && controller.abort() };
    history = await fit(run.model, {
      ...optionsOf(run, {}),
      epochs: 5,
      validation: [dataset([6], 9).batch(Int32Array.of(0, 1, 2, 3)) as Batch],
      metrics: [accuracy()],
      callbacks: [...rows.map(({ row, outside }) => row.callback(outside)), stopping],
      signal: controller.signal,
      resume: life > 0,
    });
    trained = await words(run);
  }
  const left = rows.map(async ({ name, row, outside }) => [name, await row.left(outside)]);
  return { ...Object.fromEntries(await Promise.all(left)), "no callback: history and weights": [history, trained] };
}

describe("what is left after a resume within an epoch, at its end, and where nothing is left to do", () => {
  let whole: Readonly<Record<string, unknown>>;
  const resumed: (typeof whole)[] = [];
  beforeAll(async () => {
    await init("js");
    vi.spyOn(process.stderr, "write").mockImplementation((line) => lines.push(String(line)) > 0);
    vi.spyOn(performance, "now").mockReturnValue(0); // so all take 0 seconds
    vi.spyOn(console, "warn").mockReturnValue(); // that a callback has ended the run
    whole = await leftBy([]);
    // An epoch has three steps, and earlyStopping ends the run.
    for (const stops of [[1], [3], [2, 5], [9]]) resumed.push(await leftBy(stops));
    vi.restoreAllMocks();
  });

  it("is a run that earlyStopping ended", () => {
    expect(whole.earlyStopping).toMatch(/stopped after epoch 3/);
    expect(whole.checkpoints).toMatchObject({ steps: [7, 8, 9] });
  });

  it.each([...Object.keys(CALLBACKS), "no callback: history and weights"])("%s", (name) => {
    for (const left of resumed) expect(left[name]).toEqual(whole[name]);
  });
});

it("has a row of each callback", () => {
  const folder = new URL(".", import.meta.url);
  const sources = readdirSync(folder).filter((name) => !name.endsWith(".test.ts"));
  const made = sources.flatMap((name) =>
    [...readFileSync(new URL(name, folder), "utf8").matchAll(/^export function (\w+)\(.*\): Callback/gm)].map(
      ([, callback]) => callback!,
    ),
  );
  expect(made).toHaveLength(6);
  expect(Object.keys(CALLBACKS)).toEqual(expect.arrayContaining(made));
});

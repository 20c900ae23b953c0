/** One job of ranks runs many configurations, and says of each what came out. */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bundled, optRun } from "@opt/testkit/bundled";
import type { Configuration, Told } from "@opt/testkit/configurations";

const RANKS = 4;
/** Where checkpoints touch no disk. */
const MEMORY = "/dev/shm";
/** A configuration takes a tenth of a second; ranks that wait for one another give up after 30 s. */
const PATIENCE = 120_000;

/** Of the configuration at this place of the list. */
export interface ToldOf extends Told {
  readonly index: number;
}

let programs: Promise<readonly [string, string]> | undefined;

/** Hands each to `tell` when it is done. A job that ends early, or stands still, is begun anew behind those that it was at. */
export async function runAll(list: readonly Configuration[], tell: (told: ToldOf) => void): Promise<void> {
  programs ??= bundled(optRun, join(import.meta.dirname, "ranks.ts"));
  const [launcher, program] = await programs;
  const folder = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), "opt-configurations-"));
  /** Returns those that were not told, and what was written besides. */
  const run = async (indices: readonly number[]) => {
    const file = join(folder, "list.json");
    writeFileSync(file, JSON.stringify(indices.map((index) => ({ index, one: list[index] }))));
    const untold = new Set(indices);
    const error = await job(
      [launcher, "-n", String(RANKS), "--grace", "1s", "--no-prefix", ...restarts(indices), program, folder, file],
      (told) => {
        untold.delete(told.index);
        tell(told);
      },
    );
    return { left: [...untold], error };
  };
  const isKilled = (index: number) => list[index]!.killed !== undefined;
  const restarts = ([index]: readonly number[]) => (isKilled(index!) ? ["--restarts", "1"] : []);
  /** A job is killed with one configuration alone. */
  const alone = async (index: number) => {
    const { left, error } = await run([index]);
    const message = "the job ended, or stood still";
    if (left.length > 0) tell({ index, errors: [{ code: null, message, stack: error }] });
  };
  const indices = list.map((_, index) => index);
  try {
    for (const index of indices.filter(isKilled)) await alone(index);
    let left = indices.filter((index) => !isKilled(index));
    if (left.length > 0) left = (await run(left)).left;
    while (left.length > 0) {
      for (const index of left.slice(0, RANKS)) await alone(index);
      left = left.length > RANKS ? (await run(left.slice(RANKS))).left : [];
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns what was written besides. */
async function job(args: readonly string[], tell: (told: ToldOf) => void): Promise<string> {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  let [line, error] = ["", ""];
  let timer = setTimeout(() => child.kill("SIGTERM"), PATIENCE);
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    error += text;
  });
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    const lines = (line + text).split("\n");
    line = lines.pop()!;
    for (const each of lines.filter((one) => one.startsWith("@"))) {
      clearTimeout(timer);
      timer = setTimeout(() => child.kill("SIGTERM"), PATIENCE);
      tell(JSON.parse(each.slice(1)));
    }
  });
  await new Promise((resolve) => child.on("close", resolve));
  clearTimeout(timer);
  return error;
}

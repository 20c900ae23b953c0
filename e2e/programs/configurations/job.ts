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
/** A configuration takes a tenth of a second; ranks that wait for one another give up after 90 s. */
const PATIENCE = 240_000;

/** Of the configuration at this place of the list. */
export interface ToldOf extends Told {
  readonly index: number;
}

let programs: Promise<readonly [string, string, string]> | undefined;

/** Hands each to `tell` when it is done. A job that ends early, or stands still, is begun anew behind those that it was at. */
export async function runAll(list: readonly Configuration[], tell: (told: ToldOf) => void): Promise<void> {
  programs ??= bundled(optRun, join(import.meta.dirname, "ranks.ts"), join(import.meta.dirname, "thread.ts"));
  const [launcher, program, thread] = await programs;
  const all = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), "opt-configurations-"));
  /** Returns those that were not told, and what was written besides. */
  const run = async (indices: readonly number[]) => {
    const folder = mkdtempSync(join(all, "job-")); // one that ended early has left files
    const file = join(folder, "list.json");
    // Each that kills a rank begins the job again, where it stopped. Cold ranks cost most: these come first, in one job.
    const isKilled = (index: number) => list[index]!.killed !== undefined;
    const killed = indices.filter(isKilled);
    const ordered = [...killed, ...indices.filter((index) => !isKilled(index))];
    writeFileSync(file, JSON.stringify(ordered.map((index) => ({ index, one: list[index] }))));
    const untold = new Set(ordered);
    const options = ["-n", String(RANKS), "--grace", "1s", "--restarts", String(killed.length), "--no-prefix"];
    const error = await job([launcher, ...options, program, folder, file, thread], (told) => {
      if (untold.delete(told.index)) tell(told);
    });
    return { left: [...untold], error };
  };
  try {
    for (let left = [...list.keys()]; left.length > 0; ) {
      ({ left } = await run(left));
      for (const index of left.splice(0, RANKS)) {
        const { left, error } = await run([index]);
        const message = "the job ended, or stood still";
        if (left.length > 0) tell({ index, errors: [{ code: null, message, stack: error }] });
      }
    }
  } finally {
    rmSync(all, { recursive: true, force: true });
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

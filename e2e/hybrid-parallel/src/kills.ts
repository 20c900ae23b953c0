/** Kill -9 of one rank at random moments of a run that saves every step, again and again: what must hold after each. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { diffCheckpoints, verifyCheckpoint } from "@opt/checkpoint";
import { Generator } from "@opt/core";
import { bundled, optRun } from "@opt/testkit/bundled";
import type { Launcher } from "../../../packages/parallel/testing/job";

const PHASE = fileURLToPath(new URL("phase.ts", import.meta.url));
const RANKS = 2;
const STEPS = 30;
/** A job must end so many milliseconds after a rank died. */
const SOON = 5000;
/** Which rank a process is, as its launcher told it. */
const RANK = /^(?:OPT_RUN_RANK|OMPI_COMM_WORLD_RANK|PMI_RANK)=(\d+)$/;

export interface Kills {
  readonly kills: number;
  /** Of these, how many met a save that was not done. */
  readonly inSaves: number;
  /** Runs from the first step to the last, each with the bits of the one that was never killed. */
  readonly runs: number;
  /** Milliseconds from a kill to the end of its job. */
  readonly slowest: number;
}

/** @param says what names the rank that was killed. @throws Error where something does not hold */
export async function killRanks(count: number, launcher: Launcher, says: (rank: number) => RegExp): Promise<Kills> {
  const folder = mkdtempSync(join(tmpdir(), "hybrid-kill-"));
  const [program] = await bundled(PHASE, optRun);
  try {
    const start = (run: string, from: number) => {
      const { command, args, env } = launcher(RANKS, program);
      const own = [run, "--mesh", `${RANKS}x1`, "--from", String(from), "--to", String(STEPS), "--every", "1"];
      return new Job(
        spawn(command, [...args, ...own], { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, ...env } }),
      );
    };
    const complete = async (run: string) => {
      const job = start(run, stepsOf(run).at(-1) ?? 0);
      hold((await job.ended) === 0, `a job without a kill ended badly:\n${job.error}`);
    };
    const whole = join(folder, "whole");
    await complete(whole);
    const random = new Generator(3);
    const total = { kills: 0, inSaves: 0, runs: 0, slowest: 0 };
    while (total.kills < count) {
      const run = join(folder, `run-${total.runs}`);
      while (total.kills < count && (stepsOf(run).at(-1) ?? 0) < STEPS) {
        const from = stepsOf(run).at(-1) ?? 0;
        const job = start(run, from);
        // After a step more exists, at a random moment of the next ones.
        while ((stepsOf(run).at(-1) ?? 0) <= from && job.isRunning) await sleep(2);
        await sleep(random.nextFloat() * 60);
        const victim = Math.floor(random.nextFloat() * RANKS);
        const pid = job.rank(victim);
        if (pid === undefined) {
          await job.ended; // it was done before
          continue;
        }
        const isSaving = readdirSync(run).some((name) => !/^step-\d{8}$/.test(name) && name !== "latest");
        process.kill(pid, "SIGKILL");
        const killed = performance.now();
        const code = await job.ended;
        // It had nothing left to do; Hydra's exit code is also of one that ends after its farewell.
        if (code === 0 || (stepsOf(run).at(-1) === STEPS && job.error === "")) continue;
        const took = performance.now() - killed;
        hold(took < SOON, `the job ended ${took.toFixed(0)} ms after its rank was killed`);
        hold(
          says(victim).test(job.error),
          `rank ${victim} was killed after step ${stepsOf(run).at(-1)}, and the job said:\n${job.error}`,
        );
        const newest = join(run, `step-${String(stepsOf(run).at(-1)!).padStart(8, "0")}`);
        hold((await verifyCheckpoint(newest)).ok, `${newest} is not whole`);
        total.kills++;
        total.inSaves += Number(isSaving);
        total.slowest = Math.max(total.slowest, took);
      }
      if ((stepsOf(run).at(-1) ?? 0) < STEPS) await complete(run);
      const last = `step-${String(STEPS).padStart(8, "0")}`;
      const { equal } = await diffCheckpoints(join(run, last), join(whole, last));
      hold(equal, "the run that was killed differs from the one that was not");
      total.runs++;
      rmSync(run, { recursive: true });
    }
    return total;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

class Job {
  error = "";
  readonly ended: Promise<number | null>;

  constructor(private readonly launcher: ChildProcess) {
    launcher.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.error += text;
    });
    this.ended = new Promise((resolve) => launcher.on("close", resolve));
  }

  get isRunning(): boolean {
    return this.launcher.exitCode === null && this.launcher.signalCode === null;
  }

  /** The process of a rank, as Linux knows it. */
  rank(wanted: number): number | undefined {
    return descendants(this.launcher.pid!).find((pid) => {
      const isNode = /node/.test(read(`/proc/${pid}/comm`)) || /MainThread/.test(read(`/proc/${pid}/comm`));
      return (
        isNode &&
        read(`/proc/${pid}/environ`)
          .split("\0")
          .some((each) => Number(RANK.exec(each)?.[1] ?? -1) === wanted)
      );
    });
  }
}

function descendants(pid: number): number[] {
  const tasks = existsSync(`/proc/${pid}/task`) ? readdirSync(`/proc/${pid}/task`) : [];
  const children = tasks.flatMap((task) =>
    read(`/proc/${pid}/task/${task}/children`).split(" ").filter(Boolean).map(Number),
  );
  return children.flatMap((child) => [child, ...descendants(child)]);
}

/** Empty where it is gone. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return "";
  }
}

/** Steps that exist. */
const stepsOf = (run: string) =>
  existsSync(run)
    ? readdirSync(run)
        .flatMap((name) => /^step-(\d{8})$/.exec(name)?.slice(1).map(Number) ?? [])
        .sort((a, b) => a - b)
    : [];

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function hold(is: boolean, problem: string): void {
  if (!is) throw new Error(problem);
}

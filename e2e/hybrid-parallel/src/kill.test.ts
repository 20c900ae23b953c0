/** Kill -9 of one rank at random moments of a run that saves every step: the job ends and names it, the newest step is whole, and the run goes on. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { diffCheckpoints, verifyCheckpoint } from "@opt/checkpoint";
import { Generator } from "@opt/core";
import { afterAll, expect, it } from "vitest";

const folder = mkdtempSync(join(tmpdir(), "hybrid-kill-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const OPT_RUN = fileURLToPath(
  import.meta.resolve("@opt/parallel/package.json").replace("package.json", "src/local/cli.ts"),
);
const PHASE = fileURLToPath(new URL("phase.ts", import.meta.url));
const STEPS = 30;
/** How many are killed; OPT_KILLS says another number. */
const KILLS = Number(process.env.OPT_KILLS ?? 3);
/** A job must end so soon after a rank died. */
const SOON = 5000;

function start(run: string, from: number): ChildProcess {
  const node = ["--conditions=@opt/source", "--import", import.meta.resolve("tsx")];
  const args = ["-n", "2", PHASE, run, "--mesh", "2x1", "--from", String(from), "--to", String(STEPS), "--every", "1"];
  return spawn(process.execPath, [...node, OPT_RUN, ...args], { stdio: ["ignore", "ignore", "pipe"] });
}

/** The processes of the ranks, as Linux knows them. */
function ranksOf({ pid }: ChildProcess): number[] {
  const children = `/proc/${pid}/task/${pid}/children`;
  return existsSync(children) ? readFileSync(children, "utf8").trim().split(" ").filter(Boolean).map(Number) : [];
}

const ended = (job: ChildProcess) => new Promise<number | null>((resolve) => job.on("close", resolve));

/** Steps that exist. */
const stepsOf = (run: string) =>
  existsSync(run)
    ? readdirSync(run)
        .flatMap((name) => /^step-(\d{8})$/.exec(name)?.slice(1).map(Number) ?? [])
        .sort((a, b) => a - b)
    : [];

it.skipIf(!existsSync("/proc/self/task"))(
  "a run whose ranks are killed again and again is the run that never was",
  async () => {
    const [whole, run] = [join(folder, "whole"), join(folder, "run")];
    expect(await ended(start(whole, 0))).toBe(0);
    const random = new Generator(3);
    for (let kill = 0; kill < KILLS; kill++) {
      const from = stepsOf(run).at(-1) ?? 0;
      const job = start(run, from);
      let error = "";
      job.stderr!.setEncoding("utf8").on("data", (text: string) => {
        error += text;
      });
      const end = ended(job);
      // After a step more exists, at a random moment of the next ones.
      while ((stepsOf(run).at(-1) ?? 0) <= from && job.exitCode === null)
        await new Promise((resolve) => setTimeout(resolve, 2));
      await new Promise((resolve) => setTimeout(resolve, random.nextFloat() * 60));
      const ranks = ranksOf(job);
      const victim = Math.floor(random.nextFloat() * 2);
      if (ranks.length < 2) {
        await end; // it was done before
        continue;
      }
      process.kill(ranks[victim]!, "SIGKILL");
      const killed = performance.now();
      expect(await end).not.toBe(0);
      expect(performance.now() - killed).toBeLessThan(SOON);
      expect(error).toContain(`rank ${victim} of 2 was killed by SIGKILL`);
      const newest = stepsOf(run).at(-1)!;
      expect((await verifyCheckpoint(join(run, `step-${String(newest).padStart(8, "0")}`))).ok).toBe(true);
    }
    const from = stepsOf(run).at(-1)!;
    if (from < STEPS) expect(await ended(start(run, from))).toBe(0);
    const last = `step-${String(STEPS).padStart(8, "0")}`;
    expect((await diffCheckpoints(join(run, last), join(whole, last))).equal).toBe(true);
  },
);

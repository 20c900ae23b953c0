/** Runs a program whole, then broken and resumed, and compares what both have recorded. */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch } from "../local/launcher";
import { beganAnew, firstDifference } from "./compare";
import { type Lines, linesOf } from "./lines";

export interface Proof {
  readonly size: number;
  readonly args: readonly string[];
  readonly grace: number;
  readonly isPlain: boolean;
  /** Ascending: the run is broken one step behind each, and resumed. */
  readonly breaks: readonly number[];
  readonly error: (text: string) => void;
}

/** The exit code: 0 proven, 1 the runs differ or nothing is proven, else that of the program. */
export async function proveResume({ breaks, error, ...job }: Proof): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "opt-prove-"));
  const say = (text: string) => error(`opt-run: ${text}\n`);
  /** A life of the program: its lines by rank, or its exit code. */
  const live = async (run: string, part: string, end: number | undefined): Promise<Lines[] | number> => {
    const place = join(folder, `${run}-${part}`);
    const env = {
      OPT_RUN_FOLDER: join(folder, run),
      OPT_RUN_LEDGER: place,
      OPT_RUN_BREAK: end === undefined ? undefined : String(end),
    };
    const code = await launch({ ...job, error, env });
    return code === 0 ? Array.from({ length: job.size }, (_, rank) => linesOf(`${place}-${rank}.jsonl`)) : code;
  };
  const judge = async (): Promise<number> => {
    say("the whole run");
    const whole = await live("whole", "0", undefined);
    if (typeof whole === "number") return whole;
    const none = whole.findIndex((lines) => lines.length === 0);
    if (none >= 0)
      return fail(
        say,
        `rank ${none} has recorded no step. Train with fit of @opt/train, or call record() of recordedRun() of @opt/checkpoint.`,
      );
    let resumed = 0;
    for (const [i, end] of [...breaks, undefined].entries()) {
      say(`${i === 0 ? "the broken run" : "resumed"}${end === undefined ? ", to its end" : `, until step ${end}`}`);
      const part = await live("broken", String(i), end);
      if (typeof part === "number") return part;
      for (const [rank, lines] of part.entries()) {
        const who = job.size > 1 ? `rank ${rank}: ` : "";
        const isFirst = i === 0;
        if (isFirst && lines.length > 0 && !beganAnew(whole[rank]!, lines))
          return fail(
            say,
            `${who}the broken run began at step ${lines[0]!.step}, not at the start. Save and resume in process.env.OPT_RUN_FOLDER, which is new in each run.`,
          );
        if (!isFirst && beganAnew(whole[rank]!, lines))
          return fail(
            say,
            `${who}the run began at the start again, so nothing is proven. Save by step ${breaks[i - 1]}, in process.env.OPT_RUN_FOLDER, and load the newest step from there.`,
          );
        const found = firstDifference(whole[rank]!, lines, isFirst);
        if (found) {
          const { step, name, names, cause, ...values } = found;
          const more =
            names.length > 1
              ? `, and ${names.length - 1} more (${names
                  .filter((each) => each !== name)
                  .slice(0, 3)
                  .join(", ")}${names.length > 4 ? ", ..." : ""})`
              : "";
          const after = isFirst ? "" : ` after the break at step ${breaks[i - 1]}`;
          return fail(
            say,
            `${who}step ${step}${after} differs: ${name}${more}.\n  whole run: ${shown(values.whole)}, ${isFirst ? "again" : "resumed"}: ${shown(values.broken)}\n  ${cause}`,
          );
        }
        resumed += isFirst ? 0 : lines.length;
      }
    }
    const steps = whole[0]!.at(-1)!.step;
    say(
      `proven: broken at ${breaks.join(" and ")}, the run is the same to step ${steps}, ${resumed} lines after resumes`,
    );
    return 0;
  };
  let code = 1;
  try {
    code = await judge();
    return code;
  } finally {
    if (code === 1 && existsSync(join(folder, "broken"))) say(`the run's checkpoints and ledgers are in ${folder}`);
    else rmSync(folder, { recursive: true, force: true });
  }
}

function fail(say: (text: string) => void, problem: string): number {
  say(problem);
  return 1;
}

const shown = (value: unknown) => (value === undefined ? "absent" : String(value));

/** Runs a program whole, then broken and resumed, and compares what both have recorded. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Launch, launch } from "../local/launcher";
import { beganAnew, type Difference, firstDifference } from "./compare";
import { type Lines, linesOf } from "./lines";

export interface Proof extends Pick<Launch, "size" | "args" | "error" | "grace" | "isPlain"> {
  /** Ascending: the run is broken one step behind each, and resumed. */
  readonly breaks: readonly number[];
}

const FOLDER = "process.env.OPT_RUN_FOLDER";
const UNRECORDED = "Train with fit of @opt/train, or call record() of recordedRun() of @opt/checkpoint";

/** The exit code: 0 proven, 1 the runs differ or nothing is proven, else that of the program. */
export async function proveResume({ breaks, ...job }: Proof): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "opt-prove-"));
  const say = (text: string) => job.error(`opt-run: ${text}\n`);
  /** A life of the program: its exit code, and its lines by rank. */
  const live = async (run: string, part: number, end?: number): Promise<{ code: number; lines: Lines[] }> => {
    const place = join(folder, `${run}-${part}`);
    const told = { OPT_RUN_FOLDER: join(folder, run), OPT_RUN_LEDGER: place };
    const code = await launch({ ...job, env: { ...told, OPT_RUN_BREAK: end === undefined ? end : String(end) } });
    return { code, lines: Array.from({ length: job.size }, (_, rank) => linesOf(`${place}-${rank}.jsonl`)) };
  };
  let isKept = false;
  const fail = (problem: string) => {
    isKept = true;
    say(`${problem}\nopt-run: the checkpoints and ledgers are in ${folder}`);
    return 1;
  };
  try {
    say("the whole run");
    const whole = await live("whole", 0);
    if (whole.code !== 0) return whole.code;
    const steps = Math.min(...whole.lines.map((lines) => lines.at(-1)?.step ?? -1));
    if (steps < 0) return fail(`a rank has recorded no step. ${UNRECORDED}.`);
    if (steps <= breaks.at(-1)!) return fail(`the run must go on behind step ${breaks.at(-1)}, got ${steps} steps.`);
    for (const [i, end] of [...breaks, undefined].entries()) {
      const last = breaks[i - 1];
      say(
        `${last === undefined ? "the broken run" : "resumed"}${end === undefined ? ", to its end" : ` to step ${end}`}`,
      );
      const part = await live("broken", i, end);
      const problem = problemOf(whole.lines, part.lines, last);
      if (problem) return fail(problem);
      if (part.code !== 0) return part.code;
    }
    say(`proven: broken at ${breaks.join(" and ")} and resumed, the run is the same to step ${steps}`);
    return 0;
  } finally {
    if (!isKept) rmSync(folder, { recursive: true, force: true });
  }
}

/** What is wrong with a part that was resumed after a break, by ranks. Where several ranks differ, the first to do so has the cause. */
function problemOf(whole: readonly Lines[], part: readonly Lines[], last: number | undefined): string | undefined {
  const who = (rank: number) => (part.length > 1 ? `rank ${rank}: ` : "");
  const found: { readonly rank: number; readonly difference: Difference }[] = [];
  for (const [rank, lines] of part.entries()) {
    if (lines.length === 0) continue;
    const isAnew = beganAnew(whole[rank]!, lines);
    if (last === undefined && !isAnew)
      return `${who(rank)}the broken run began at step ${lines[0]!.step}, not at the start. Save and resume in ${FOLDER}, which is new in each run.`;
    if (last !== undefined && isAnew)
      return `${who(rank)}the run began at the start again: nothing is proven. Save by step ${last} in ${FOLDER}, and load from there.`;
    const difference = firstDifference(whole[rank]!, lines, last === undefined);
    if (difference) found.push({ rank, difference });
  }
  const [first] = found.sort((a, b) => a.difference.step - b.difference.step || a.difference.kind - b.difference.kind);
  return first && who(first.rank) + described(first.difference, last);
}

function described({ step, name, names, whole, broken, cause }: Difference, last: number | undefined): string {
  const others = names.filter((each) => each !== name);
  const more = others.length > 0 ? `, and ${others.length} more: ${others.slice(0, 3).join(", ")}` : "";
  const after = last === undefined ? "" : ` after the break at step ${last}`;
  const [one, other] = [whole, broken].map((value) => value ?? "absent");
  return `step ${step}${after} differs: ${name}${more}.\n  whole run: ${one}, ${last === undefined ? "again" : "resumed"}: ${other}\n  ${cause}`;
}

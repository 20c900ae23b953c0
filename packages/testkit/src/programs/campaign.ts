/** Many programs, one after the other, and the smallest of those that fail. */
import { generate } from "./generate/generate";
import { type Court, judge } from "./judge";
import { listing } from "./listing";
import type { Program } from "./program";
import { smallest } from "./shrink";

export interface Report {
  programs: number;
  /** By the code with which every device refused. */
  readonly refused: Record<string, number>;
  /** Programs that were recorded and replayed to their end on some device. */
  replayed: number;
}

export const newReport = (): Report => ({ programs: 0, refused: {}, replayed: 0 });

/** A program that did not do what it must, as small as it could be made. */
export class ProgramFailure extends Error {
  override readonly name = "ProgramFailure";

  constructor(
    readonly rule: string,
    detail: string,
    readonly program: Program,
  ) {
    super(
      [
        `seed ${program.seed}: ${rule}`,
        detail,
        "",
        listing(program),
        "",
        `OPT_PROGRAM='${JSON.stringify(program)}'`,
      ].join("\n"),
    );
  }
}

/** Judges one program. @throws ProgramFailure with the smallest that fails in the same way */
export async function tryProgram(program: Program, court: Court, report: Report): Promise<void> {
  const { failure, refused, replayed } = await judge(program, court);
  report.programs++;
  if (refused !== null) report.refused[refused] = (report.refused[refused] ?? 0) + 1;
  if (replayed) report.replayed++;
  if (failure === null) return;
  const least = await smallest(
    program,
    async (smaller) => (await judge(smaller, court)).failure?.rule === failure.rule,
  );
  const again = (await judge(least, court)).failure ?? failure;
  throw new ProgramFailure(again.rule, again.detail, least);
}

/** The programs of the seeds from `first` on, until `isOver` says so. */
export async function campaign(
  court: Court,
  { first = 1, isOver }: { readonly first?: number; isOver(programs: number): boolean },
): Promise<Report> {
  const report = newReport();
  for (let seed = first; !isOver(report.programs); seed++) await tryProgram(generate(seed), court, report);
  return report;
}

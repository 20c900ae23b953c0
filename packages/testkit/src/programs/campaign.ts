/** Many programs, one after the other, and the smallest of those that fail. */
import { generate } from "./generate/generate";
import { generateSmall } from "./generate/small";
import { canInterpret } from "./interpret/interpret";
import { examineSmall } from "./interpreted";
import { listing } from "./listing";
import { examine, type Result, type Setup } from "./oracle";
import type { Program } from "./program";
import { smallest } from "./shrink";

export interface Report {
  programs: number;
  /** By the code with which every device rejected. */
  readonly rejected: Record<string, number>;
  /** Programs with calls that did not run a compiled function, and how many such calls there were. */
  replayed: number;
  replays: number;
}

export const newReport = (): Report => ({ programs: 0, rejected: {}, replayed: 0, replays: 0 });

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

/** How programs are made of seeds, and what must hold of them. */
export interface Kind {
  generate(seed: number): Program;
  examine(program: Program, setup: Setup): Promise<Result>;
}

/** Training scripts, in every mode on every device. */
export const SCRIPTS: Kind = { generate, examine };
/** Small programs, beside their interpretation. */
export const SMALL: Kind = { generate: generateSmall, examine: examineSmall };

/** All that must hold of a program: small ones are scripts, too. */
export const kindsOf = (program: Program): readonly Kind[] => (canInterpret(program) ? [SMALL, SCRIPTS] : [SCRIPTS]);

/** Examines one program. @throws ProgramFailure with the smallest that fails in the same way */
export async function tryProgram(
  program: Program,
  setup: Setup,
  report: Report,
  { examine }: Kind = SCRIPTS,
): Promise<void> {
  const { failure, rejected, replays } = await examine(program, setup);
  report.programs++;
  if (rejected !== null) report.rejected[rejected] = (report.rejected[rejected] ?? 0) + 1;
  if (replays > 0) report.replayed++;
  report.replays += replays;
  if (failure === null) return;
  const fails = async (smaller: Program) => (await examine(smaller, setup)).failure?.rule === failure.rule;
  const least = await smallest(program, fails);
  const again = (await examine(least, setup)).failure ?? failure;
  throw new ProgramFailure(again.rule, again.detail, least);
}

/** The programs of the seeds from `first` on, until `isOver` says so. */
export async function campaign(
  setup: Setup,
  {
    kind = SCRIPTS,
    first = 1,
    isOver,
    failed,
  }: {
    readonly kind?: Kind;
    readonly first?: number;
    isOver(programs: number): boolean;
    /** Is given what fails, and the campaign goes on; without it the first failure is thrown. */
    failed?(failure: ProgramFailure): void;
  },
): Promise<Report> {
  const report = newReport();
  for (let seed = first; !isOver(report.programs); seed++) {
    try {
      await tryProgram(kind.generate(seed), setup, report, kind);
    } catch (error) {
      if (failed === undefined || !(error instanceof ProgramFailure)) throw error;
      failed(error);
    }
  }
  return report;
}

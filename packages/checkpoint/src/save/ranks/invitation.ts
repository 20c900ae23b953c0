/** What a rank knows when it comes, and the names of what ranks meet by. */
import { stepName } from "../../format/steps";
import type { FileSystem } from "../../stores/file-system";
import { join } from "../../stores/path";
import type { Attempt } from "../step/owner";

export interface Invitation {
  readonly fileSystem: FileSystem;
  /** The run's folder. */
  readonly folder: string;
  readonly step: number;
  /** Ranks that give the same name meet. */
  readonly name: string;
  readonly rank: number;
  readonly world: number;
  /** What all ranks must say alike, one line. */
  readonly terms: string;
  /** How long to wait for ranks that have not come, in milliseconds. */
  readonly patience: number;
  /** How long a rank of another machine has to show that it is alive, in milliseconds. */
  readonly answerWithin?: number;
}

export const numbered = (rank: number) => `rank-${String(rank).padStart(5, "0")}`;

/** What the names of files that point at attempts begin with. */
export function pointerPrefix({ step, name }: Invitation): string {
  return `${stepName(step)}.tmp-${name}.life-`;
}

export async function generations(invitation: Invitation): Promise<number[]> {
  const prefix = pointerPrefix(invitation);
  const names = (await invitation.fileSystem.list(invitation.folder)).map(({ name }) => name);
  return names.flatMap((name) =>
    name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)) ? [Number(name.slice(prefix.length))] : [],
  );
}

/** 0 where there is none yet. */
export async function newestGeneration(invitation: Invitation): Promise<number> {
  return Math.max(0, ...(await generations(invitation)));
}

export function attemptPath({ folder, step }: Invitation, attempt: Attempt): string {
  return join(folder, `${stepName(step)}.tmp-${attempt}`);
}

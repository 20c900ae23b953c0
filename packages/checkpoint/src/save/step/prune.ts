/** Removing steps of a run by hand, by the rules that saving has. */
import { check, checkOptions, show } from "@opt/core";
import { readManifest } from "../../format/manifest";
import { bestFirst, listSteps } from "../../format/steps";
import { fileSystemOf } from "../../platform/local";
import { checkedPath, diskError, type FileSystem } from "../../stores/file-system";
import { endAttempt, newAttempt } from "./owner";
import { checkedRetention, type Retention, removeSteps, stepsThatGo } from "./retention";

export interface PruneOptions {
  /** How many of the newest steps stay, or which: as `keep` of `saveCheckpoint`. */
  readonly keep: number | Retention;
  /** Remove nothing, only tell. */
  readonly dryRun?: boolean;
  readonly fileSystem?: FileSystem;
}

export interface PruneResult {
  readonly removed: readonly number[];
  readonly kept: readonly number[];
}

const WHERE = "pruneCheckpoints";

/** See operations.ts. */
export async function pruneCheckpoints(folder: string, options: PruneOptions): Promise<PruneResult> {
  checkedPath(WHERE, folder);
  checkOptions(WHERE, options, { keep: ["number", "object"], dryRun: "boolean", fileSystem: "any" });
  const keep = checkedRetention(WHERE, options.keep, undefined);
  const says = Object.values(keep).some((rule) => rule !== undefined);
  check(says, "BAD_ARGUMENT", WHERE, () => "keep must say what stays, got nothing.", "For example keep: 3.");
  const fileSystem = fileSystemOf(options.fileSystem);
  const run = fileSystem.resolve(folder);
  const steps = await listSteps(fileSystem, run);
  const last = steps.at(-1);
  check(last !== undefined, "MISSING", run, () => "it holds no complete step.", "Give the folder of a run.");
  const { best } = keep;
  if (best && (await bestFirst(fileSystem, steps, best)).length === 0) {
    const names = Object.keys((await readManifest(fileSystem, last.path)).values);
    const problem = () => `keep.best chooses by the number values.${best.value}, the last step has ${show(names)}.`;
    check(false, "BAD_ARGUMENT", WHERE, problem, "Name a number that the steps have.");
  }
  const gone = await stepsThatGo(fileSystem, run, keep);
  const attempt = newAttempt();
  try {
    if (!options.dryRun) await removeSteps(fileSystem, run, gone, attempt);
  } catch (error) {
    throw diskError(error, run, "removing steps");
  } finally {
    endAttempt(attempt);
  }
  const removed = gone.map(({ step }) => step);
  return { removed, kept: steps.map(({ step }) => step).filter((step) => !removed.includes(step)) };
}

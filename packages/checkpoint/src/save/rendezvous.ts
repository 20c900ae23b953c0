/** How ranks that cannot talk still agree: each leaves its report in the step's folder, and the one that finds all of them commits. */
import { join } from "node:path";
import type { RankRecord } from "../format/record";
import { type Json, readWhole } from "../format/source";
import { diskError, type FileSystem, isMissing } from "../stores/file-system";

export interface Report extends RankRecord {
  readonly values: { readonly [key: string]: Json };
}

function reportName(rank: number): string {
  return `rank-${String(rank).padStart(5, "0")}.part.json`;
}

/**
 * Leaves this rank's report. If it was the last, runs `commit` with every rank's, in rank order, and returns what that returns; else
 * undefined. `commit` runs on one rank only, however the ranks' calls fall together.
 */
export async function meetInFolder<T>(
  fileSystem: FileSystem,
  folder: string,
  world: number,
  report: Report,
  commit: (reports: readonly Report[]) => Promise<T>,
): Promise<T | undefined> {
  // Beside the folder, so that it outlives the folder's renaming: whoever comes late must still find the place taken.
  const claim = `${folder}.claim`;
  const names = Array.from({ length: world }, (_, rank) => reportName(rank));
  const allPresent = async () => {
    const present = new Set((await fileSystem.list(folder)).map(({ name }) => name));
    return names.every((name) => present.has(name));
  };
  try {
    await leave(fileSystem, folder, report);
    if (!(await allPresent().catch(ifGone)) || !(await take(fileSystem, claim))) return undefined;
    try {
      // Looked at again under the claim: another rank may have committed and let go of it in between.
      if (!(await allPresent().catch(ifGone))) return undefined;
      const reports: Report[] = [];
      for (const name of names) {
        const bytes = await readWhole(fileSystem, join(folder, name), 1 << 30);
        reports.push(JSON.parse(Buffer.from(bytes).toString("utf8")));
      }
      for (const name of names) await fileSystem.remove(join(folder, name));
      return await commit(reports);
    } finally {
      await fileSystem.remove(claim).catch(() => {}); // the next save sweeps it
    }
  } catch (error) {
    throw diskError(error, folder, "agreeing");
  }
}

/** A folder that is gone has been committed by another rank. */
function ifGone(error: unknown): boolean {
  if (isMissing(error)) return false;
  throw error;
}

/** Written under another name first, so that nobody reads half of it. */
async function leave(fileSystem: FileSystem, folder: string, report: Report): Promise<void> {
  const path = join(folder, reportName(report.rank));
  const file = await fileSystem.open(`${path}.new`, "create");
  try {
    await file.write(Buffer.from(JSON.stringify(report)), 0);
  } finally {
    await file.close();
  }
  await fileSystem.rename(`${path}.new`, path);
}

async function take(fileSystem: FileSystem, claim: string): Promise<boolean> {
  try {
    await (await fileSystem.open(claim, "createNew")).close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** What the launcher and its ranks agree on: environment variables, and which file descriptor is what. */
import { environmentVariable } from "@opt/core/backend";

export const RANK = "OPT_RUN_RANK";
export const SIZE = "OPT_RUN_SIZE";

/** A line to the launcher: that a rank has ended while it waited for one that it names. Its end says that the launcher is gone. */
export const LAUNCHER = 3;

/** The memory into which rank `owner` writes, and which all read. */
export const memoryOf = (owner: number) => LAUNCHER + 1 + owner;

/** The socket between this rank and `other`. */
export const socketTo = (other: number, size: number) => LAUNCHER + 1 + size + other;

/** Holds the process that is the rank: programs that it starts inherit these variables, and are no ranks. */
export const TAKEN = "OPT_RUN_RANK_PROCESS";

/** Who this process is in the job that `opt-run` started; undefined for others. Its threads are this process, too. */
export function ownPlace(): { rank: number; size: number } | undefined {
  const [rank, size] = [environmentVariable(RANK), environmentVariable(SIZE)];
  if (rank === undefined || size === undefined) return undefined;
  const taken = environmentVariable(TAKEN) ?? String(process.pid);
  process.env[TAKEN] = taken;
  return taken === String(process.pid) ? { rank: Number(rank), size: Number(size) } : undefined;
}

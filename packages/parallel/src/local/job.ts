/** What the launcher and its ranks agree on: environment variables, and which file descriptor is what. */
import { environmentVariable } from "@opt/core/backend";

export const RANK = "OPT_RUN_RANK";
export const SIZE = "OPT_RUN_SIZE";

/** In the environment: what the sockets of the job are named by, and the key that its ranks know. */
export const NAME = "OPT_RUN_NAME";
export const KEY = "OPT_RUN_KEY";

/** The socket to the launcher. Its end says that the launcher is gone. */
export const LAUNCHER = 3;

/** The memory into which rank `owner` writes, and which all read. */
export const memoryOf = (owner: number) => LAUNCHER + 1 + owner;

/** Open files of a rank of a job of so many, with room for those of its program. */
export const filesOf = (size: number) => 2 * size + 64;

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

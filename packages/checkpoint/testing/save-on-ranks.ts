/** Ranks of one process, which save together. */
import { localCommunicators } from "../src/save/ranks/communicator";
import { type CheckpointContents, type SaveOptions, saveCheckpoint } from "../src/save/save";

/** How the saves of step `step` ended, by rank; a rank may have options of its own. */
export function saveOnRanks(
  ranks: number,
  tensorsOf: (rank: number) => CheckpointContents["tensors"],
  options: SaveOptions | ((rank: number) => SaveOptions),
  step = 1,
) {
  const saves = localCommunicators(ranks).map((communicator) => {
    const own = typeof options === "function" ? options(communicator.rank) : options;
    return saveCheckpoint("/r", { step, tensors: tensorsOf(communicator.rank) }, { communicator, ...own });
  });
  return Promise.allSettled(saves);
}

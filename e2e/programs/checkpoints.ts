/** Checkpoints as the way from one run to the next: cut into one to three files, and read back whole. */
import { loadCheckpoint, memoryFileSystem, optimizerContents, optimizerState, saveCheckpoint } from "@opt/checkpoint";
import type { Contents, Store } from "@opt/testkit";

export const inCheckpoints: Store = async ({ tensors, optimizers: saved, values }, seed) => {
  const fileSystem = memoryFileSystem();
  const states = Object.entries(saved).map(([id, state]) => optimizerContents(state, id));
  const contents = {
    step: 1,
    tensors: Object.assign({}, tensors, ...states.map((state) => state.tensors)),
    values: Object.assign({ values }, ...states.map((state) => state.values)),
  };
  await saveCheckpoint("run", contents, { fileSystem, world: 1 + (seed % 3) });
  return async () => {
    const loaded = await loadCheckpoint("run", { fileSystem });
    const back = Object.keys(saved).map((id) => [id, optimizerState(loaded, { key: id })] as const);
    const optimizers = Object.fromEntries(back);
    return { tensors: loaded.tensors, optimizers, values: loaded.values.values as unknown as Contents["values"] };
  };
};

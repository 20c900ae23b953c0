/** Complex parameters and their state keep their dtype in checkpoints, and are cut by their elements. */
import { AdamW } from "@opt/adam-amsgrad";
import { parameter, type Tensor, tensor, viewAsComplex, viewAsReal } from "@opt/core";
import { expect, it } from "vitest";
import {
  loadCheckpoint,
  memoryFileSystem,
  optimizerContents,
  optimizerState,
  reshardCheckpoint,
  saveCheckpoint,
} from "./index";

const parts = Array.from({ length: 6 }, (_, i) => [Math.sin(i), Math.cos(i)]);
const bits = (x: Tensor) => [...new Uint32Array(x.dataSync().slice().buffer)];

function step(w: Tensor, optimizer: AdamW): void {
  optimizer.zeroGrad();
  viewAsReal(w).pow(2).sum().backward();
  optimizer.step();
}

it("goes on bit for bit, in two boxes too", async () => {
  const fileSystem = memoryFileSystem();
  const w = parameter(viewAsComplex(tensor(parts)), { name: "w" });
  const optimizer = new AdamW([["w", w]]);
  step(w, optimizer);
  const { tensors, values } = optimizerContents(optimizer.stateDict());
  await saveCheckpoint("/run", { step: 1, tensors: { w, ...tensors }, values }, { fileSystem });
  await reshardCheckpoint("/run", "/two", { ranks: 2, fileSystem });
  step(w, optimizer);

  for (const rank of [undefined, 0, 1]) {
    const part = rank === undefined ? {} : { rank, world: 2 };
    const loaded = await loadCheckpoint(rank === undefined ? "/run" : "/two", { fileSystem, ...part });
    const again = loaded.tensors.w as Tensor;
    expect(again).toMatchObject({ dtype: "c64", shape: [rank === undefined ? 6 : 3] });
    const v = parameter(again, { name: "w" });
    const other = new AdamW([["w", v]]);
    other.loadStateDict(optimizerState(loaded));
    expect(other.stateDict().state.w!.exp_avg).toMatchObject({ dtype: "c64" });
    step(v, other);
    expect(bits(v)).toEqual(bits(w).slice(rank === 1 ? 6 : 0, rank === 0 ? 6 : 12));
  }
});

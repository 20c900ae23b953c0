/** 8-bit state is saved as the float32 that it stands for, which packs to the same bits: files are cut like those of any other state. */
import { AdamW } from "@opt/adam-amsgrad";
import { enableQ8, parameter, type Tensor } from "@opt/core";
import { expect, it } from "vitest";
import {
  loadCheckpoint,
  memoryFileSystem,
  mergeCheckpoint,
  optimizerContents,
  optimizerState,
  reshardCheckpoint,
  saveCheckpoint,
} from "./index";

enableQ8();

/** No multiple of blocks of 256, whole or in three boxes. */
const SHAPE = [150, 37];
const start = Float32Array.from({ length: 150 * 37 }, (_, i) => Math.sin(i * 78.233));
const bits = (x: Tensor) => [...new Uint32Array(x.dataSync().slice().buffer)];

function run(w: Tensor) {
  const optimizer = new AdamW([["w", w]], { stateDType: "q8", lr: 0.1 });
  const train = (steps: number) => {
    for (let i = 0; i < steps; i++) {
      optimizer.zeroGrad();
      w.mul(w).sum().backward();
      optimizer.step();
    }
  };
  const moments = () => Object.values(optimizer.stateDict().state.w!).filter((x): x is Tensor => typeof x !== "number");
  return { w, optimizer, train, moments };
}

it("goes on bit for bit, from the files as saved and after they were cut and merged, and boxes hold the whole's values", async () => {
  const fileSystem = memoryFileSystem();
  const one = run(parameter(start, { shape: SHAPE, name: "w" }));
  one.train(3);
  const { tensors, values } = optimizerContents(one.optimizer.stateDict());
  await saveCheckpoint("/run", { step: 3, tensors: { w: one.w, ...tensors }, values }, { fileSystem });
  await reshardCheckpoint("/run", "/three", { ranks: 3, fileSystem });
  await mergeCheckpoint("/three", "/merged.safetensors", { fileSystem });
  const whole = one.moments().map(bits);
  for (const rank of [0, 1, 2]) {
    const loaded = await loadCheckpoint("/three", { fileSystem, rank, world: 3 });
    for (const [k, name] of ["w.exp_avg", "w.exp_avg_sq"].entries())
      expect(bits(loaded.tensors[name] as Tensor)).toEqual(whole[k]!.slice(rank * 50 * 37, (rank + 1) * 50 * 37));
  }
  one.train(2);
  for (const path of ["/run", "/merged.safetensors"]) {
    const loaded = await loadCheckpoint(path, { fileSystem });
    const again = run(parameter(loaded.tensors.w as Tensor, { name: "w" }));
    again.optimizer.loadStateDict(optimizerState(loaded));
    again.train(2);
    expect(bits(again.w)).toEqual(bits(one.w));
    expect(again.moments().map(bits)).toEqual(one.moments().map(bits));
  }
});

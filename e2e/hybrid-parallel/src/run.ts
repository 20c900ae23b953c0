/** The hybrid-parallel tutorial: train on 4 ranks, save slices, merge them for inference, go on training on 2. */
import { join } from "node:path";
import {
  loadCheckpoint,
  localCommunicators,
  mergeCheckpoint,
  reshardCheckpoint,
  saveCheckpoint,
  verifyCheckpoint,
} from "@opt/checkpoint";
import type { Tensor } from "@opt/core";
import { FcRank, INPUTS, layoutOf, OUTPUTS } from "./fc";

export interface Result {
  /** Shapes of what a rank held before and holds after. */
  readonly before: readonly number[];
  readonly after: readonly number[];
  readonly merged: readonly number[];
  /** Whether weight and moments equal those of a run that never stopped, bit for bit. */
  readonly sameAsUninterrupted: boolean;
}

export async function run(folder: string, log: (line: string) => void): Promise<Result> {
  const [four, two, merged] = [
    join(folder, "four-ranks"),
    join(folder, "two-ranks"),
    join(folder, "model.safetensors"),
  ];

  const ranks = localCommunicators(4).map((communicator) => ({
    communicator,
    fc: new FcRank(communicator.rank, 4).train(0, 10),
  }));
  await Promise.all(
    ranks.map(({ communicator, fc }) =>
      saveCheckpoint(four, fc.contents(10), { communicator, layout: layoutOf(4), checkReplicas: true }),
    ),
  );
  const { ok, tensors } = await verifyCheckpoint(four);
  log(`4 ranks of [${ranks[0]!.fc.weight.shape}] saved: ${tensors} tensors, ${ok ? "whole" : "damaged"}`);

  await mergeCheckpoint(four, merged);
  const whole = (await loadCheckpoint(merged)).tensors;
  log(
    `merged for inference: fc.weight [${whole["fc.weight"]!.shape}], moments.fc.weight [${whole["moments.fc.weight"]!.shape}]`,
  );

  await reshardCheckpoint(four, two, { layout: layoutOf(2) });
  const resumed = await Promise.all([0, 1].map((rank) => FcRank.resume(two, rank, 2)));
  for (const fc of resumed) fc.train(10, 20);
  log(`2 ranks of [${resumed[0]!.weight.shape}] went on from step 10 to 20`);

  const uninterrupted = new FcRank(0, 1).train(0, 20);
  const sameAsUninterrupted = (["weight", "moments"] as const).every((name) => {
    const pieces = resumed.map((fc) => bits(fc[name]));
    return bits(uninterrupted[name]) === pieces.join(",");
  });
  log(
    `weight and moments ${sameAsUninterrupted ? "equal" : "DIFFER FROM"} those of one rank that trained ${OUTPUTS}x${INPUTS} for 20 steps`,
  );
  return {
    before: ranks[0]!.fc.weight.shape,
    after: resumed[0]!.weight.shape,
    merged: whole["fc.weight"]!.shape,
    sameAsUninterrupted,
  };
}

function bits(tensor: Tensor): string {
  return new Uint32Array(tensor.dataSync().slice().buffer).join(",");
}

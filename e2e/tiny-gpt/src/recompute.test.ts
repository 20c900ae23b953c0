import { AdamW } from "@opt/adam-amsgrad";
import { compile, Generator, init, listDevices, manualSeed, recompute, type Tensor, tensor } from "@opt/core";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { crossEntropy, Dropout } from "@opt/nn";
import { describe, expect, it } from "vitest";
import { Gpt } from "./model";

const devices = (await listDevices()).filter(({ name, available }) => available && ["wasm", "cpu"].includes(name));
const [TOKENS, LENGTH, BATCH] = [32, 32, 4];

const tokens = (seed: number) =>
  tensor(
    Int32Array.from({ length: BATCH * LENGTH }, (_, i) => (i * i * 7 + i * seed) % TOKENS),
    { shape: [BATCH, LENGTH] },
  );

/** Three steps of 12 blocks, each with dropout behind it. */
async function train(isRecomputed: boolean) {
  manualSeed(1);
  const model = new Gpt({
    tokens: TOKENS,
    width: 32,
    length: LENGTH,
    blocks: 12,
    heads: 2,
    generator: new Generator(2),
  });
  for (const block of model.blocks) {
    const dropout = new Dropout(0.1);
    const plain = block.forward.bind(block);
    const dropped = (x: Tensor) => dropout.forward(plain(x));
    block.forward = isRecomputed ? (x) => recompute(dropped, x) : dropped;
  }
  const optimizer = new AdamW(model.namedParameters(), { lr: 1e-2 });
  const step = compile((input: Tensor, labels: Tensor) => {
    const loss = crossEntropy(model.forward(input), labels);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  });
  const losses: number[] = [];
  for (let i = 0; i < 3; i++) losses.push(await step(tokens(i), tokens(i + 1)).item());
  const { peakBytes, eager } = step.explain();
  return {
    losses,
    weights: [...model.parameters()].map((w) => [...w.dataSync()]),
    peaks: [eager.peakBytes, peakBytes],
  };
}

describe.each(devices)("12 recomputed blocks on $name", ({ name }) => {
  it("have the bits of the plain run, in at most 45 % of its memory", async () => {
    await init(name);
    const [plain, recomputed] = [await train(false), await train(true)];
    expect(recomputed.losses).toEqual(plain.losses);
    expect(recomputed.weights).toEqual(plain.weights);
    for (const [i, bytes] of recomputed.peaks.entries()) expect(bytes).toBeLessThanOrEqual(0.45 * plain.peaks[i]!);
  });
});

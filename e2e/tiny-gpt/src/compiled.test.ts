/** A compiled training step: how many launches it has, how much memory, and the bits of the eager step. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { compile, init, listDevices, manualSeed, type Tensor, tensor, tidy } from "@opt/core";
import { crossEntropy } from "@opt/nn";
import { describe, expect, it } from "vitest";
import { Gpt } from "./model";

const devices = (await listDevices()).filter(({ name }) => ["js", "wasm", "cpu"].includes(name));

/** Losses and weights after some steps, and what the step consists of. */
async function train(isCompiled: boolean) {
  manualSeed(1);
  const model = new Gpt({ tokens: 32, width: 24, length: 12, blocks: 2, heads: 3 });
  const optimizer = new AdamW(model.namedParameters(), { lr: 1e-2 });
  const tokens = (seed: number) =>
    tensor(
      Int32Array.from({ length: 48 }, (_, i) => (i * 7919 + seed * (i >> 3)) % 32),
      { shape: [4, 12] },
    );
  const step = (input: Tensor, labels: Tensor) => {
    const loss = crossEntropy(model.forward(input), labels);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  };
  const compiled = compile(step);
  const run = isCompiled ? compiled : (input: Tensor, labels: Tensor) => tidy(() => step(input, labels));
  const losses: number[] = [];
  for (let i = 0; i < 6; i++) losses.push(await run(tokens(i), tokens(i + 1)).item());
  const weights = [...model.parameters()].map((parameter) => [...parameter.dataSync()]);
  return { numbers: { losses, weights }, explain: () => compiled.explain() };
}

describe.each(devices)("a compiled step on $name", ({ name }) => {
  it("has the bits of the eager step, in at most 60 launches and 60 % of its memory", async () => {
    await init(name);
    const [eager, compiled] = [await train(false), await train(true)];
    expect(compiled.numbers).toEqual(eager.numbers);
    const { launches, peakBytes, eager: before } = compiled.explain();
    expect(launches).toBeLessThanOrEqual(60);
    expect(peakBytes).toBeLessThanOrEqual(0.6 * before.peakBytes);
  });
});

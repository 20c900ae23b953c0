// compile(f, { memory }): cheap results are computed again in backward, with the bits of the plain run.
import { AdamW } from "@opt/adam-amsgrad";
import { compile, Generator, init, listDevices, manualSeed, type Tensor, tensor } from "@opt/core";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { crossEntropy, Dropout } from "@opt/nn";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Gpt } from "./model";

const devices = (await listDevices()).filter(
  ({ name, available }) => available && ["js", "wasm", "cpu"].includes(name),
);
const [TOKENS, LENGTH, BATCH] = [32, 8, 2];

const tokens = (seed: number) =>
  tensor(
    Int32Array.from({ length: BATCH * LENGTH }, (_, i) => (i * i * 7 + i * seed) % TOKENS),
    { shape: [BATCH, LENGTH] },
  );

/** Steps of two blocks, each with dropout behind it: replays among them. */
async function train(memory?: number | string) {
  manualSeed(1);
  const generator = new Generator(2);
  const model = new Gpt({ tokens: TOKENS, width: 16, length: LENGTH, blocks: 2, heads: 2, generator });
  for (const block of model.blocks) {
    const dropout = new Dropout(0.1);
    const plain = block.forward.bind(block);
    block.forward = (x: Tensor) => dropout.forward(plain(x));
  }
  const optimizer = new AdamW(model.namedParameters(), { lr: 1e-2 });
  const train = (input: Tensor, labels: Tensor) => {
    const loss = crossEntropy(model.forward(input), labels);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  };
  const step = compile(train, { memory });
  const losses: number[] = [];
  for (let i = 0; i < 4; i++) losses.push(await step(tokens(i), tokens(i + 1)).item());
  const weights = [...model.parameters()].map((w) => [...w.dataSync()]);
  return { numbers: { losses, weights }, peakBytes: step.explain().peakBytes };
}

describe.each(devices)("a budget of memory on $name", ({ name }) => {
  it("holds, with the bits of the plain run", async () => {
    await init(name);
    const plain = await train();
    const budget = Math.floor(0.9 * plain.peakBytes);
    const fitted = await train(budget);
    expect(fitted.peakBytes).toBeLessThanOrEqual(budget);
    expect(fitted.numbers).toEqual(plain.numbers);
    expect(await train(`${(plain.peakBytes + 1) / 1024} KiB`)).toEqual(plain);
  });

  it("that nothing fits into says what is needed", async () => {
    await init(name);
    const error = await train(1000).catch((thrown) => thrown);
    expect(error).toMatchObject({ code: "BAD_ARGUMENT", where: "compile" });
    const [, least] = /memory must be at least (\d+) bytes for this function, got 1000/.exec(error.message)!;
    expect((await train(Number(least))).peakBytes).toBe(Number(least));
  });
});

it.each(["many", "5 boxes", "MB", "1.2.3MB", "", 0, -1, Number.NaN])("%j is no budget", (memory) => {
  expectCode("BAD_ARGUMENT", () => compile((x: Tensor) => x, { memory }));
});

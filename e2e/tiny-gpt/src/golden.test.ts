import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { clipGradNorm, init, listDevices, type Tensor, tensor, tidy } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { crossEntropy } from "@opt/nn";
import { sample, type TrainedBy, trainingGolden, triesAll } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { Gpt } from "./model";

const golden = trainingGolden("tiny-gpt");
const optimizers: Record<TrainedBy, (params: Iterable<[string, Tensor]>) => NAdam | Adam | AdamW> = {
  NAdam: (params) => new NAdam(params),
  Adam: (params) => new Adam(params),
  AMSGrad: (params) => new Adam(params, { amsgrad: true }),
  AdamW: (params) => new AdamW(params),
};

/** The loss of the first steps, with PyTorch's first weights and batches. */
async function train(trainedBy: TrainedBy, steps: number): Promise<number[]> {
  const model = new Gpt({ tokens: 64, width: 32, length: 16, blocks: 2, heads: 2 });
  model.loadStateDict(
    Object.fromEntries([...golden.parameters].map(([name, { data, shape }]) => [name, tensor(data, { shape })])),
  );
  const optimizer = optimizers[trainedBy](model.namedParameters());
  const losses: number[] = [];
  for (const batch of golden.tokens.slice(0, steps)) {
    const loss = tidy(() => {
      const input = tensor(
        batch.map((row) => row.slice(0, -1)),
        { dtype: "i32" },
      );
      const loss = crossEntropy(
        model.forward(input),
        batch.map((row) => row.slice(1)),
      );
      loss.backward();
      clipGradNorm(model.parameters(), golden.clipGradNorm);
      optimizer.step();
      optimizer.zeroGrad();
      return loss;
    });
    losses.push(await loss.item());
    loss.dispose();
  }
  return losses;
}

const devices = (await listDevices()).filter(({ name }) => ["js", "wasm", "cpu"].includes(name));

describe.each(devices)("tiny GPT on $name", ({ name, available, reason }) => {
  const names = Object.keys(optimizers) as TrainedBy[];
  it.for(name === "js" ? sample(names) : names)("%s: every loss is PyTorch's", async (trainedBy, { skip }) => {
    if (!available) skip(reason);
    await init(name);
    const expected = golden.losses[trainedBy].slice(0, name === "js" && !triesAll ? 15 : undefined);
    expect(await train(trainedBy, expected.length)).toAgreeWith(expected, { absolute: 0, relative: 1e-5 });
  });
});

import { AdamW } from "@opt/adam-amsgrad";
import { autocast, compile, Generator, GradScaler, init, type Tensor, tensor, tidy } from "@opt/core";
import { crossEntropy } from "@opt/nn";
import { expect, it } from "vitest";
import { Gpt } from "./model";

const [TOKENS, LENGTH] = [16, 8];

const tokens = (seed: number) =>
  tensor(
    Int32Array.from({ length: 2 * LENGTH }, (_, i) => (i * i + i * seed) % TOKENS),
    { shape: [2, LENGTH] },
  );

async function train(isCompiled: boolean): Promise<number[]> {
  const generator = new Generator(2);
  const model = new Gpt({ tokens: TOKENS, width: 16, length: LENGTH, blocks: 1, heads: 2, generator });
  const optimizer = new AdamW(model.namedParameters(), { lr: 1e-2 });
  const scaler = new GradScaler();
  const step = (input: Tensor, labels: Tensor) => {
    const loss = autocast("f16", () => crossEntropy(model.forward(input), labels));
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    optimizer.zeroGrad();
    return loss.detach();
  };
  const run = isCompiled ? compile(step) : (x: Tensor, y: Tensor) => tidy(() => step(x, y));
  const losses: number[] = [];
  for (let i = 0; i < 8; i++) losses.push(await run(tokens(1), tokens(2)).item());
  return losses;
}

it("a GPT trains in float16 with a GradScaler, compiled with the same numbers", async () => {
  await init("js");
  const losses = await train(false);
  expect(losses.at(-1)).toBeLessThan(losses[0]!);
  expect(await train(true)).toEqual(losses);
});

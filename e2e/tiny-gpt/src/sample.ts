import { type Generator, noGrad, tensor, tidy } from "@opt/core";
import type { Gpt } from "./model";

/** Continues a sequence: each token is drawn from softmax(logits / temperature) of the tokens before it. */
export async function sample(
  model: Gpt,
  start: Int32Array,
  count: number,
  { generator, temperature = 0.8 }: { generator: Generator; temperature?: number },
): Promise<number[]> {
  const tokens = [...start];
  for (let i = 0; i < count; i++) {
    const seen = tokens.slice(-model.length);
    const probabilities = tidy(() =>
      noGrad(() => {
        const logits = model.forward(tensor([seen], { dtype: "i32" }));
        return logits.slice(-1, undefined, 1).div(temperature).softmax();
      }),
    );
    tokens.push(draw(await probabilities.data(), generator.nextFloat()));
    probabilities.dispose();
  }
  return tokens;
}

/** The first index at which the running sum exceeds `at`. */
function draw(probabilities: ArrayLike<number>, at: number): number {
  let sum = 0;
  for (let i = 0; i < probabilities.length; i++) {
    sum += probabilities[i]!;
    if (at < sum) return i;
  }
  return probabilities.length - 1; // rounding left the sum just below `at`
}

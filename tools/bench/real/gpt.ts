/** A GPT of 6 blocks of width 384 on 8 texts of 256 of 65 characters, as nanoGPT's for Shakespeare, without dropout. */
import { tensor } from "@opt/core";
import { crossEntropy } from "@opt/nn";
import { Gpt } from "@opt-e2e/tiny-gpt";
import { integers } from "../nn/values";
import type { RealTask } from "./task";

const [BATCH, LENGTH, TOKENS] = [8, 256, 65];

export function gpt(): RealTask {
  const model = new Gpt({ tokens: TOKENS, width: 384, length: LENGTH, blocks: 6, heads: 6 });
  return {
    model,
    batch: (index) =>
      [104_729, 1299].map((factor) =>
        tensor(integers(BATCH * LENGTH, factor + 2 * index, TOKENS), { shape: [BATCH, LENGTH] }),
      ),
    loss: (tokens, next) => crossEntropy(model.forward(tokens!).reshape([-1, TOKENS]), next!.reshape([-1])),
    optimizer: "AdamW",
    lr: 1e-3,
  };
}

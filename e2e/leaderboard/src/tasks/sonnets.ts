/** A small GPT on Shakespeare's sonnets, character by character. */
import type { Tensor } from "@opt/core";
import { Alphabet, Windows } from "@opt/data";
import { crossEntropy } from "@opt/nn";
import { Gpt } from "@opt-e2e/tiny-gpt";
import { sonnets } from "@opt-e2e/tiny-gpt/text";
import { endless } from "./batches";
import type { Task } from "./task";

const LENGTH = 32;
const BATCH = 8;
const UNSEEN = 12;
/** The share of the text that is trained on. */
const SHARE = 0.9;

export const task: Task = {
  title: "GPT on sonnets",
  about: `A GPT of 2 blocks, width 32, on ${BATCH} windows of ${LENGTH} characters of Shakespeare's sonnets. The loss is of ${UNSEEN} windows of sonnets that it has not seen.`,
  budget: 120,
  restLr: 0.01,
  files: [],
  async prepared() {
    const text = sonnets();
    const alphabet = new Alphabet(text);
    const tokens = alphabet.encode(text);
    const held = Math.floor(tokens.length * SHARE);
    return ({ generator }) => {
      const model = new Gpt({ tokens: alphabet.length, width: 32, length: LENGTH, blocks: 2, heads: 2, generator });
      const loss = (input: Tensor, target: Tensor) => crossEntropy(model.forward(input), target);
      const unseen = new Windows(tokens.subarray(held), { length: LENGTH, stride: 4 * LENGTH });
      return {
        model,
        batches: endless(new Windows(tokens.subarray(0, held), { length: LENGTH }), BATCH, generator),
        loss,
        unseen: unseen.batch(Int32Array.from({ length: UNSEEN }, (_, i) => i)),
        evaluation: loss,
      };
    };
  },
};

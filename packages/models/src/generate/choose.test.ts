/** Tokens are chosen with the probabilities of transformers' processors. */
import { readFileSync } from "node:fs";
import { Generator } from "@opt/core";
import "@opt/testkit";
import { expect, it } from "vitest";
import { type ChoiceOptions, choose, penalized, weightsOf } from "./choose";

const file = new URL("../../testing/tokenizer/answers.json", import.meta.url);
const { choices } = JSON.parse(readFileSync(file, "utf8")) as {
  choices: readonly { options: ChoiceOptions; probabilities: number[] }[];
};
const LOGITS = Float32Array.from({ length: 12 }, (_, i) => ((i * 7) % 12) / 4 - 1);
const SEEN = [3, 5, 3];

it.each(choices)("$options", ({ options, probabilities }) => {
  const weights = weightsOf(penalized(LOGITS, SEEN, options.repetitionPenalty ?? 1), options);
  const sum = weights.reduce((a, b) => a + b, 0);
  expect([...weights].map((weight) => weight / sum)).toAgreeWith(probabilities, { absolute: 1e-6, relative: 0 });
  const generator = new Generator(1);
  const counts = probabilities.map(() => 0);
  for (let i = 0; i < 4000; i++) counts[choose(LOGITS, SEEN, options, generator)]!++;
  expect(counts.map((count) => count / 4000)).toAgreeWith(probabilities, { absolute: 0.03, relative: 0 });
  expect(counts.filter((_, i) => probabilities[i] === 0).every((count) => count === 0)).toBe(true);
});

it("temperature 0 takes the first of the largest, after the penalty", () => {
  const generator = new Generator(1);
  expect(choose(Float32Array.of(1, 3, 3), [], {}, generator)).toBe(1);
  expect(choose(Float32Array.of(1, 3, 2.5), [1], { repetitionPenalty: 2 }, generator)).toBe(2);
});

it("topK beyond all tokens leaves out none", () => {
  expect(weightsOf(LOGITS, { topK: 100 })).toEqual(weightsOf(LOGITS, { topK: LOGITS.length }));
});

it("topP keeps no token beyond those that reach it exactly", () => {
  const logits = Float32Array.of(-2, 0, -2, -1);
  const temperature = 1 / Math.LN2;
  expect([...weightsOf(logits, { temperature })]).toEqual([0.25, 1, 0.25, 0.5]);
  expect([...weightsOf(logits, { temperature, topP: 0.75 })]).toEqual([0, 1, 0, 0.5]);
});

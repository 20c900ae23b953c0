/** Tokens and labels of texts and conversations, the loss on them, and a run that is resumed. */
import { AdamW } from "@opt/adam-amsgrad";
import { memoryFileSystem } from "@opt/checkpoint";
import { Generator, init, rand, type Tensor, tensor } from "@opt/core";
import { DataLoader } from "@opt/data";
import { crossEntropy } from "@opt/nn";
import { expectCode } from "@opt/testkit";
import { checkpoints, fit } from "@opt/train";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";
import { SIZES, TinyTransformer } from "../../testing/tiny-transformer";
import { lora } from "../adapters/lora";
import type { Message } from "../tokenizer/tokenizer";
import { causalLoss } from "./causal-loss";
import { type ChatTokenizer, chatDataset } from "./chat-dataset";
import { textDataset } from "./text-dataset";

beforeAll(() => init("js"));

const LETTERS = "?abcdefghijklmnopqrstuvwxyz:|.";
const END = 31;
/** A token for each letter; with a first token unless it must not be special. */
const tokenizer: ChatTokenizer = {
  ends: [END],
  encode: (text: string, { special = true } = {}) => [
    ...(special ? [30] : []),
    ...[...text].map((letter) => Math.max(0, LETTERS.indexOf(letter))),
  ],
  applyChatTemplate: async (messages: readonly Message[], { addGenerationPrompt }: { addGenerationPrompt: boolean }) =>
    messages.map(({ role, content }) => `${role[0]}:${content}|`).join("") + (addGenerationPrompt ? "a:" : ""),
};
const plain = ([tokens, labels]: readonly [Tensor, Tensor]) => [[...tokens.dataSync()], [...labels.dataSync()]];
const codes = (text: string) => [...text].map((letter) => LETTERS.indexOf(letter));

describe("textDataset", () => {
  it("packs texts behind each other", () => {
    const data = textDataset(tokenizer, ["abc", "de"], { length: 4 });
    expect(data.length).toBe(2);
    expect(plain(data.get(0))).toEqual([
      [30, 1, 2, 3],
      [30, 1, 2, 3],
    ]);
    const [tokens] = data.batch([1, 0]);
    expect([tokens.shape, [...tokens.dataSync()]]).toEqual([
      [2, 4],
      [END, 30, 4, 5, 30, 1, 2, 3],
    ]);
  });

  it("cuts and fills up texts that are not packed", () => {
    const data = textDataset({ ...tokenizer, encode: codes }, ["abcdef", "g"], { length: 4, packed: false });
    expect(plain(data.get(0))).toEqual([codes("abcd"), codes("abcd")]);
    expect(plain(data.get(1))).toEqual([
      [7, END, END, END],
      [7, END, -100, -100],
    ]);
  });

  it("has the rows of a plain program, of any texts and tokenizers", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 7 });
    const drawn = fc.record({
      ...{ texts: fc.array(text, { minLength: 1, maxLength: 4 }), length: fc.integer({ min: 2, max: 6 }) },
      /** Whether there is an end, and whether the tokenizer adds it. */
      ...{ packed: fc.boolean(), hasEnd: fc.boolean(), adds: fc.boolean() },
    });
    const check = fc.property(drawn, ({ texts, length, packed, hasEnd, adds }) => {
      const encode = (text: string) => [...codes(text), ...(adds ? [END] : [])];
      const whole = texts.map((text) => [...codes(text), ...(adds || hasEnd ? [END] : [])]);
      const stream = whole.flat();
      fc.pre(!packed || stream.length >= length);
      const cut = (row: number[], fill: number) => Array.from({ length }, (_, i) => row[i] ?? fill);
      const starts = Array.from({ length: Math.floor(stream.length / length) }, (_, i) => i * length);
      const rows = packed ? starts.map((start) => stream.slice(start, start + length)) : whole;
      const data = textDataset({ encode, ...(hasEnd && { ends: [END, 5] }) }, texts, { length, packed });
      const expected = rows.map((row) => [cut(row, hasEnd ? END : 0), cut(row, -100)]);
      expect(expected.map((_, i) => plain(data.get(i)))).toEqual(expected);
      const [tokens, labels] = data.batch(expected.map((_, i) => expected.length - 1 - i));
      expect([tokens, labels].map((x) => [...x.dataSync()])).toEqual(
        [0, 1].map((part) => expected.toReversed().flatMap((row) => row[part]!)),
      );
      expect(data.length).toBe(expected.length);
    });
    fc.assert(check, { seed: 1, numRuns: 100 });
  });

  it("rejects lengths and texts of which no sample comes", () => {
    for (const length of [1, 2.5]) expectCode("BAD_ARGUMENT", () => textDataset(tokenizer, ["abc"], { length }));
    expectCode("BAD_ARGUMENT", () => textDataset(tokenizer, ["abc"], { length: 100 }));
    expectCode("BAD_ARGUMENT", () => textDataset(tokenizer, [], { length: 4, packed: false }));
    expectCode("BAD_ARGUMENT", () => textDataset(tokenizer, "one text", { length: 4 }));
    expectCode("BAD_ARGUMENT", () => textDataset(tokenizer, ["abcdef"], { length: 4 }).get(2));
  });
});

describe("chatDataset", () => {
  const talk = [
    { role: "user", content: "hi" },
    { role: "assistant", content: "yo" },
    { role: "user", content: "x" },
    { role: "assistant", content: "z" },
  ];

  it("labels what the assistant says, with the end of its turn", async () => {
    const data = chatDataset(tokenizer, [talk, talk.slice(0, 2)], { length: 20 });
    const [tokens, labels] = plain(await data.get(0));
    const text = tokenizer.encode("u:hi|a:yo|u:x|a:z|", { special: false }); // the template has what is special
    expect(tokens).toEqual([...Array.from(text), END, END]);
    const heard = tokens!.map((token, i) => (labels![i] === -100 ? "." : LETTERS[token]));
    expect(heard.join("")).toBe(".......yo|......z|..");
    const [batch] = await data.batch([1, 0]);
    expect(batch.shape).toEqual([2, 20]);
    expect(plain(await chatDataset(tokenizer, [talk], { length: 8 }).get(0))[0]).toEqual(codes("u:hi|a:y"));
  });

  it("rejects conversations without an answer, and templates that rewrite turns", async () => {
    await expectCode("BAD_ARGUMENT", () => chatDataset(tokenizer, [talk.slice(0, 1)], { length: 8 }).get(0));
    const applyChatTemplate = (messages: readonly Message[]) => `${messages.length}`;
    const rewriting = { ...tokenizer, applyChatTemplate };
    await expectCode("BAD_ARGUMENT", () => chatDataset(rewriting, [talk], { length: 8 }).get(0));
    expectCode("BAD_ARGUMENT", () => chatDataset(tokenizer, [], { length: 8 }));
    expectCode("BAD_ARGUMENT", () => chatDataset(tokenizer, ["text"] as never, { length: 8 }));
    expectCode("BAD_ARGUMENT", () => chatDataset(tokenizer, [talk], { length: 0 }));
  });
});

describe("causalLoss", () => {
  it("is the mean of the next tokens that count", async () => {
    const logits = rand([2, 4, 5], { generator: new Generator(1) });
    const labels = [
      [0, 1, -100, 3],
      [-100, -100, 2, 4],
    ];
    const { sum, count } = causalLoss(logits, tensor(labels, { dtype: "i32" }));
    expect(await count.item()).toBe(4);
    const rows = [
      [0, 0, 1],
      [0, 2, 3],
      [1, 1, 2],
      [1, 2, 4],
    ].map(([b, place, label]) => crossEntropy(logits.select(0, b!).slice(place!, place! + 1), [label!]).item());
    const expected = (await Promise.all(rows)).reduce((a, b) => a + b);
    expect(await sum.item()).toAgreeWith(expected, { absolute: 1e-5, relative: 1e-6 });
  });

  it("rejects labels of another shape", () => {
    const labels = tensor([[1, 2, 3]], { dtype: "i32" });
    expectCode("BAD_SHAPE", () => causalLoss(rand([1, 2, 5]), labels));
    expectCode("BAD_SHAPE", () => causalLoss(rand([3, 5]), labels.reshape([3])));
  });
});

it("fit trains on both, and goes on in the middle of an epoch with the same bits", async () => {
  const device = await init("js");
  const texts = Array.from({ length: 12 }, (_, i) => `${LETTERS.slice(1, 8 + i)}.`);
  const talks = texts.map((content) => [
    { role: "user", content: "say" },
    { role: "assistant", content },
  ]);
  const sets = {
    text: textDataset(tokenizer, texts, { length: 12 }),
    chat: chatDataset(tokenizer, talks, { length: 16 }),
  };
  for (const [name, dataset] of Object.entries(sets)) {
    const fileSystem = memoryFileSystem();
    const run = async (stopAt: number, folder: string) => {
      const model = lora(new TinyTransformer(SIZES, device), {
        targets: ["q_proj", "v_proj"],
        generator: new Generator(3),
      });
      const data = new DataLoader<[Tensor, Tensor], [Tensor, Tensor]>(dataset, {
        ...{ batchSize: 2, shuffle: true, generator: new Generator(4) },
      });
      const stop = new AbortController();
      const callbacks = [
        checkpoints(folder, { every: 1, fileSystem }),
        { onStepEnd: ({ step }: { step: number }) => void (step === stopAt && stop.abort()) },
      ];
      const optimizer = new AdamW(model.namedParameters(), { lr: 1e-2 });
      const options = { data, loss: causalLoss, optimizer, epochs: 2, callbacks, resume: true, signal: stop.signal };
      const { losses } = await fit(model, options);
      return { losses, weights: model.parameters().map((each) => [...each.dataSync()]) };
    };
    const whole = await run(-1, `${name}-whole`);
    await run(3, `${name}-broken`);
    const resumed = await run(-1, `${name}-broken`);
    expect(whole.losses.at(-1)!, name).toBeLessThan(whole.losses[0]!);
    expect(resumed.weights, name).toEqual(whole.weights);
  }
});

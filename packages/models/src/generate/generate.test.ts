import "@opt/kernels-cpu";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryFileSystem } from "@opt/checkpoint";
import { Generator, init } from "@opt/core";
import { expectCode, torchPython } from "@opt/testkit";
import fc from "fast-check";
import { afterAll, expect, it } from "vitest";
import {
  chatDataset,
  fromPretrained,
  generate,
  languageModel,
  type Message,
  savePretrained,
  type Tokenizer,
} from "../index";
import { Pieces } from "./pieces";

await init("js");
const folder = new URL("../../testing/tokenizer/", import.meta.url);
const answers = JSON.parse(readFileSync(new URL("answers.json", folder), "utf8")) as {
  texts: readonly { text: string; tokens: number[] }[];
  messages: Message[];
  chat: string;
};
const scratch = mkdtempSync(join(tmpdir(), "opt-models-"));
afterAll(() => rmSync(scratch, { recursive: true }));
const hasTransformers = torchPython !== undefined && spawnSync(torchPython, ["-c", "import transformers"]).status === 0;
const FILES = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"];

/** A model whose folder has a tokenizer. */
async function opened(left: readonly string[] = []) {
  const fileSystem = memoryFileSystem();
  const json = { model_type: "gpt2", vocab_size: 300, n_positions: 64, n_embd: 8, n_layer: 1, n_head: 2 };
  await savePretrained(languageModel(json, { generator: new Generator(4) }), "saved", { fileSystem });
  for (const name of FILES.filter((name) => !left.includes(name))) {
    const bytes = readFileSync(new URL(name, folder));
    const file = await fileSystem.open(`saved/${name}`, "create", bytes.length);
    await file.write(bytes, 0);
    await file.finish();
    await file.close();
  }
  return { fileSystem, ...(await fromPretrained("saved", { fileSystem })) };
}

async function piecesOf(given: AsyncIterable<string>): Promise<string[]> {
  const pieces: string[] = [];
  for await (const piece of given) pieces.push(piece);
  return pieces;
}

it("a folder's tokenizer has the tokens of the Rust library, and its template the text of Jinja", async () => {
  const { tokenizer } = await opened();
  for (const { text, tokens } of answers.texts) {
    expect(tokenizer!.encode(text)).toEqual(tokens);
    expect(tokenizer!.encode(text, { special: false })).toEqual(tokens.slice(1));
    expect(tokenizer!.decode(tokens)).toBe(text.replace("<|end|>", ""));
    expect(tokenizer!.decode([])).toBe("");
  }
  expect(tokenizer!.ends).toEqual([1]);
  expect(await tokenizer!.applyChatTemplate!(answers.messages, { addGenerationPrompt: true })).toBe(answers.chat);
});

it("an option leaves the tokenizer out; without a template there is no chat", async () => {
  const { fileSystem, model } = await opened(["chat_template.jinja"]);
  expect((await fromPretrained("saved", { fileSystem, tokenizer: false })).tokenizer).toBe(null);
  const { tokenizer } = await fromPretrained("saved", { fileSystem });
  const ask = (tokenizer: Tokenizer) => generate(model, tokenizer, answers.messages).next();
  await expectCode("UNSUPPORTED", () => ask(tokenizer!));
  const { encode, decode } = tokenizer!;
  await expectCode("BAD_ARGUMENT", () => ask({ encode, decode }));
  for (const stop of [[""], "x", [1]])
    await expectCode("BAD_ARGUMENT", () => generate(model, tokenizer!, "a", { stop: stop as string[] }).next());
});

it("savePretrained takes the tokenizer along, also where transformers opens it", async () => {
  const { fileSystem, model, tokenizer } = await opened();
  await savePretrained(model, "again", { fileSystem });
  const again = await fromPretrained("again", { fileSystem });
  const { text } = answers.texts[0]!;
  expect(again.tokenizer!.encode(text)).toEqual(tokenizer!.encode(text));
  expect(await again.tokenizer!.applyChatTemplate!(answers.messages, { addGenerationPrompt: true })).toBe(answers.chat);
  const without = await fromPretrained("again", { fileSystem, tokenizer: false });
  await savePretrained(without.model, "without", { fileSystem });
  expect((await fromPretrained("without", { fileSystem })).tokenizer).toBe(null);
  if (!hasTransformers) return;
  await savePretrained(model, scratch);
  const program = `
import sys, json
from transformers import AutoTokenizer
print(json.dumps(AutoTokenizer.from_pretrained(sys.argv[1])(sys.argv[2])["input_ids"]))
`;
  const said = execFileSync(torchPython!, ["-c", program, scratch, text], { encoding: "utf8" });
  expect(JSON.parse(said)).toEqual(tokenizer!.encode(text));
});

it("answers that are given at once have the pieces of each alone", async () => {
  const { model, tokenizer } = await opened();
  const ask = (prompt: string) => piecesOf(generate(model, tokenizer!, prompt, { maxTokens: 12, temperature: 1 }));
  const prompts = ["Once upon", "a", "Once"];
  const alone: string[][] = [];
  for (const prompt of prompts) alone.push(await ask(prompt));
  expect(await Promise.all(prompts.map(ask))).toEqual(alone);
});

it("without a tokenizer, a text or messages there is no answer", async () => {
  const { model, tokenizer } = await opened(FILES);
  expect(tokenizer).toBe(null);
  await expectCode("BAD_ARGUMENT", () => generate(model, tokenizer!, "a").next());
  const whole = await opened();
  await expectCode("BAD_ARGUMENT", () => generate(model, whole.tokenizer!, 5 as unknown as string).next());
});

it("a text and a conversation go on, with the same pieces for the same seed", async () => {
  const { model, tokenizer } = await opened();
  const shape = { temperature: 1, topK: 200, topP: 0.99, repetitionPenalty: 1.01 };
  const options = { maxTokens: 20, seed: 2, ends: [], ...shape };
  const pieces = await piecesOf(generate(model, tokenizer!, "Once upon", options));
  expect(pieces.length).toBeGreaterThan(3);
  expect(await piecesOf(generate(model, tokenizer!, "Once upon", { ...options, compile: false }))).toEqual(pieces);
  expect(await piecesOf(generate(model, tokenizer!, "Once upon", { ...options, seed: 3 }))).not.toEqual(pieces);
  expect((await piecesOf(generate(model, tokenizer!, answers.messages, options))).length).toBeGreaterThan(1);
  const stop = [pieces.join("").slice(4, 6)];
  expect((await piecesOf(generate(model, tokenizer!, "Once upon", { ...options, stop }))).join("")).toBe(
    pieces.join("").slice(0, pieces.join("").indexOf(stop[0]!)),
  );
});

it("the prompt of a conversation has the tokens that chatDataset gives it, a text those of encode", async () => {
  const { model, tokenizer } = await opened();
  const talk = [{ role: "user", content: "Once upon" }];
  const seen: (readonly number[])[] = [];
  const encode: Tokenizer["encode"] = (...given) => {
    seen.push(tokenizer!.encode(...given));
    return seen.at(-1)!;
  };
  for (const prompt of [talk, "Once upon"])
    await generate(model, { ...tokenizer!, encode }, prompt, { maxTokens: 1 }).next();
  const answered = [...talk, { role: "assistant", content: "a" }];
  const [tokens, labels] = await chatDataset(tokenizer!, [answered], { length: 64 }).get(0);
  const count = labels.dataSync().findIndex((label) => label !== -100);
  expect(seen).toEqual([[...tokens.dataSync().slice(0, count)], tokenizer!.encode("Once upon")]);
});

it("pieces have whole characters, and hold back what may be a stop word", async () => {
  const { tokenizer } = await opened();
  const pieces = (text: string, stop: string[] = []) => {
    const prompt = tokenizer!.encode("a");
    const made = new Pieces(tokenizer!, prompt, stop);
    const given: string[] = [];
    for (const token of tokenizer!.encode(text, { special: false })) if (!made.isStopped) given.push(made.next(token));
    if (!made.isStopped) given.push(made.next(null));
    return given.filter((piece) => piece !== "");
  };
  for (const { text } of answers.texts.filter(({ text }) => !text.includes("<"))) {
    expect(pieces(text).join("")).toBe(text);
    expect(pieces(text).some((piece) => piece.includes("\ufffd"))).toBe(false);
  }
  expect(pieces("\u2603\u{1f600}")).toEqual(["\u2603", "\u{1f600}"]);
  expect(pieces("ab##c# d###e", ["###"])).toEqual(["a", "b", "##c", "# ", "d"]);
  expect(pieces("ab##", ["###"]).join("")).toBe("ab##");
});

it("an answer is the text up to the first stop word, however it is cut into tokens", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 3 });
  const drawn = fc.record({ tokens: fc.array(word, { maxLength: 8 }), stop: fc.array(word, { maxLength: 3 }) });
  fc.assert(
    fc.property(drawn, ({ tokens, stop }) => {
      const decode = (ids: ArrayLike<number>) => Array.from(ids, (id) => (id < 0 ? ">" : tokens[id])).join("");
      const pieces = new Pieces({ encode: () => [], decode } as Tokenizer, [-1], stop);
      const texts = tokens.map((_, i) => tokens.slice(0, i + 1).join(""));
      const firstIn = (text: string) => Math.min(...stop.map((each) => text.indexOf(each)).filter((at) => at >= 0));
      const ended = texts.find((text) => Number.isFinite(firstIn(text)));
      let given = "";
      for (const id of tokens.keys()) if (!pieces.isStopped) given += pieces.next(id);
      if (!pieces.isStopped) given += pieces.next(null);
      expect(given).toBe(ended === undefined ? tokens.join("") : ended.slice(0, firstIn(ended)));
    }),
    { seed: 1, numRuns: 500 },
  );
});

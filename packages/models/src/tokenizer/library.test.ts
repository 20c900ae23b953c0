/** What the files beside a tokenizer say, wherever they say it: what ends a text, and the template. */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, it } from "vitest";
import type { Place } from "../pretrained/place";
import { openTokenizer } from "./library";

const json = JSON.parse(readFileSync(new URL("../../testing/tokenizer/tokenizer.json", import.meta.url), "utf8"));
const token = (text: string) => fc.constantFrom(text, { content: text });
const template = (mark: string) =>
  `${mark}{{ bos_token }}{{ messages[0].content }}{% if add_generation_prompt %}>{% endif %}`;
const plain = template("plain ");
const named = (name: string) => ({ name, template: template(`${name} `) });

const drawn = fc.record({
  eos: fc.oneof(token("<|end|>"), token("unknown"), fc.constantFrom(undefined, null)),
  bos: token("<|begin|>"),
  generation: fc.constantFrom(undefined, {}, ...[null, 7, 1, [7, 9], [1, 7]].map((eos_token_id) => ({ eos_token_id }))),
  file: fc.constantFrom(undefined, template("file ")),
  told: fc.constantFrom(undefined, plain, [named("tool_use"), named("default")]),
  config: fc.constantFrom(true, true, false),
});

it("in every combination", async () => {
  await fc.assert(
    fc.asyncProperty(drawn, fc.boolean(), async ({ eos, bos, generation, file, told, config }, addGenerationPrompt) => {
      const files: Record<string, unknown> = {
        "tokenizer.json": json,
        ...(config && { "tokenizer_config.json": { bos_token: bos, eos_token: eos, chat_template: told } }),
        ...(generation && { "generation_config.json": generation }),
        ...(file !== undefined && { "chat_template.jinja": file }),
      };
      const read = async (name: string) => files[name];
      const place = { has: async (name: string) => name in files, json: read, text: read };
      const { ends, applyChatTemplate } = await openTokenizer(place as unknown as Place);
      const said = [(generation as { eos_token_id?: unknown })?.eos_token_id ?? []].flat();
      const isEnd =
        config &&
        [eos].flat().some((each) => (each as { content?: string })?.content === "<|end|>" || each === "<|end|>");
      expect(ends!.toSorted()).toEqual([...new Set([...said, ...(isEnd ? [1] : [])])].toSorted());
      const mark =
        file !== undefined ? "file" : !config || told === undefined ? undefined : told === plain ? "plain" : "default";
      const text = async () => applyChatTemplate!([{ role: "user", content: "hi" }], { addGenerationPrompt });
      if (mark === undefined) await expect(text()).rejects.toMatchObject({ code: "UNSUPPORTED" });
      else expect(await text()).toBe(`${mark} ${config ? "<|begin|>" : ""}hi${addGenerationPrompt ? ">" : ""}`);
    }),
    { seed: 1, numRuns: 40 },
  );
});

/** A store that fails is not one where nothing is: whichever call fails, the reader says so, and leaves no tensor. */
import { readFileSync } from "node:fs";
import { type FileSystem, memoryFileSystem } from "@opt/checkpoint";
import { init, OptError } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { fromPretrained, languageModel, loadAdapter, lora, merge, saveAdapter, savePretrained } from "../index";

const CONFIG = { model_type: "gpt2", vocab_size: 300, n_positions: 4, n_embd: 2, n_layer: 1, n_head: 1 };
const FILES = ["tokenizer.json", "tokenizer_config.json", "chat_template.jinja"];
const failed = new OptError("IO", "store", "the disk must answer.");

/** Counts what is asked of a store; the call of number `at` fails. */
function failing(inner: FileSystem, at: number) {
  const told = { calls: 0 };
  const counted = <T extends object>(one: T): T =>
    new Proxy(one, {
      get: (target, name) => {
        const value = Reflect.get(target, name);
        if (typeof value !== "function" || name === "resolve" || name === "close") return value;
        return async (...given: unknown[]) => {
          if (told.calls++ === at) throw failed;
          const result = await value.apply(target, given);
          return name === "open" ? counted(result) : result;
        };
      },
    });
  return { fileSystem: counted(inner), told };
}

it("reading a model, its tokenizer and an adapter", async () => {
  const device = await init("js");
  const store = memoryFileSystem();
  const model = languageModel(CONFIG);
  await savePretrained(model, "saved", { fileSystem: store });
  for (const name of FILES) {
    const bytes = readFileSync(new URL(`../../testing/tokenizer/${name}`, import.meta.url));
    const file = await store.open(`saved/${name}`, "create", bytes.length);
    await file.write(bytes, 0);
    await file.finish();
  }
  const targets = ["c_attn"];
  await saveAdapter(lora(model, { rank: 1, targets }), "adapter", { fileSystem: store });
  const other = languageModel(CONFIG);
  const READERS = [
    (fileSystem: FileSystem) => fromPretrained("saved", { fileSystem }),
    (fileSystem: FileSystem) => loadAdapter(other, "adapter", { fileSystem }),
  ];
  for (const read of READERS) {
    const whole = failing(store, -1);
    await read(whole.fileSystem);
    if (read === READERS[1]) merge(other);
    expect(whole.told.calls).toBeGreaterThan(5);
    const { tensors } = device.memory();
    for (let at = 0; at < whole.told.calls; at++) {
      await expectCode("IO", () => read(failing(store, at).fileSystem));
      expect(device.memory().tensors, `call ${at}`).toBeLessThanOrEqual(tensors); // those of others may be collected
    }
  }
});

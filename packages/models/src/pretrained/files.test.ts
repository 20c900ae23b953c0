/** Folders are written, read, and opened by transformers. OPT_TORCH_PYTHON names a Python that may have it. */
import "@opt/kernels-cpu";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { loadCheckpoint, memoryFileSystem, saveWeights } from "@opt/checkpoint";
import { init, type Tensor, tensor } from "@opt/core";
import { expectCode, torchPython } from "@opt/testkit";
import { afterAll, describe, expect, it } from "vitest";
import { goldens, TOKENS, tiny } from "../../testing/tiny";
import { fromPretrained, type LanguageModel, readConfig, savePretrained } from "../index";

const PROGRAM = fileURLToPath(new URL("../../testing/families.py", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "opt-models-"));
afterAll(() => rmSync(scratch, { recursive: true }));

const names = [...goldens.keys()];
const logitsOf = (model: LanguageModel) => model.forward(tensor([TOKENS], { dtype: "i32" })).data();
const hasTransformers = torchPython !== undefined && spawnSync(torchPython, ["-c", "import transformers"]).status === 0;
const within = (expected: Float32Array) => ({
  absolute: 1e-5 * expected.reduce((most, x) => Math.max(most, Math.abs(x)), 0),
  relative: 0,
});

it.each(names)("%s: what is written is read with the same words", async (name) => {
  const fileSystem = memoryFileSystem();
  const model = await tiny(name, "js");
  const before = model.device.memory();
  await savePretrained(model, "saved", { fileSystem });
  // The garbage collector may find what ran before.
  const { tensors, bytes } = model.device.memory();
  expect([tensors <= before.tensors, bytes <= before.bytes]).toEqual([true, true]);
  const seen: [number, number][] = [];
  const progress = (...bytes: [number, number]) => void seen.push(bytes);
  const read = await fromPretrained("saved", { fileSystem, device: "js", progress });
  expect(await logitsOf(read.model)).toEqual(await logitsOf(model));
  expect(read.tokenizer).toBe(null);
  expect(seen.at(-1)![0]).toBe(seen.at(-1)![1]);
  await expectCode("DUPLICATE", () => savePretrained(model, "saved", { fileSystem }));
  await savePretrained(model, "saved", { fileSystem, overwrite: true });
});

const tied = names.filter((name) => readConfig(goldens.get(name)!.config).tied);
it.each(tied)("%s: a head in the file beside its table is read", async (name) => {
  const fileSystem = memoryFileSystem();
  const model = await tiny(name, "js");
  await savePretrained(model, "saved", { fileSystem });
  const { tensors } = await loadCheckpoint("saved/model.safetensors", { fileSystem });
  const table = Object.entries(tensors).find(([key]) => /(wte|embed_tokens)\.weight$/.test(key))![1];
  const more = { ...tensors, "lm_head.weight": table };
  await saveWeights("saved/model.safetensors", more, { fileSystem, overwrite: true });
  const read = await fromPretrained("saved", { fileSystem, device: "js" });
  expect(await logitsOf(read.model)).toEqual(await logitsOf(model));
});

it("weights take another dtype", async () => {
  const fileSystem = memoryFileSystem();
  await savePretrained(await tiny("llama", "js"), "saved", { fileSystem });
  const { model } = await fromPretrained("saved", { fileSystem, dtype: "bf16" });
  expect([model.dtype, model.parameters()[0]!.dtype]).toEqual(["bf16", "bf16"]);
  await savePretrained(model, "half", { fileSystem });
  const again = await fromPretrained("half", { fileSystem });
  expect([again.config.json.dtype, again.model.dtype]).toEqual(["bfloat16", "f32"]);
});

it("files without the trunk's prefix and with masks are read, others rejected", async () => {
  const fileSystem = memoryFileSystem();
  const model = await tiny("gpt2", "js");
  await savePretrained(model, "saved", { fileSystem });
  const bare = Object.entries(model.stateDict()).map(([name, x]): [string, Tensor] => [name.slice(12), x.clone()]);
  for (const [i, [name, x]] of bare.entries())
    if (/\.c_(attn|proj|fc)\.weight/.test(name)) bare[i] = [name, x.transpose(0, 1)];
  const write = (more: Record<string, Tensor>, left: string[] = []) => {
    const kept = bare.filter(([name]) => !left.includes(name));
    return saveWeights(
      "saved/model.safetensors",
      { ...Object.fromEntries(kept), ...more },
      { fileSystem, overwrite: true },
    );
  };
  const read = async () => (await fromPretrained("saved", { fileSystem })).model;
  await write({ "h.0.attn.bias": tensor([1]) });
  expect(await logitsOf(await read())).toEqual(await logitsOf(model));
  await write({ "h.0.attn.other": tensor([1]) });
  await expectCode("UNSUPPORTED", read);
  await write({ "ln_f.bias": tensor([1]) });
  const told = await read().catch(({ code, message }) => ({ code, message }));
  expect(told).toEqual({
    code: "BAD_STATE",
    message: expect.stringMatching(/ln_f\.bias \[\d+\], got \[1\]\. Look at/),
  });
  await write({}, ["ln_f.bias"]);
  await expectCode("MISSING", read);
  await fileSystem.remove("saved/model.safetensors");
  await expectCode("MISSING", read);
  await expectCode("MISSING", () => fromPretrained("elsewhere", { fileSystem }));
});

describe.skipIf(!hasTransformers)("transformers", () => {
  it("writes folders that are read here, also in several files", async () => {
    execFileSync(torchPython!, [PROGRAM, "save", join(scratch, "theirs")], { stdio: "ignore" });
    for (const name of names) {
      const { model } = await fromPretrained(join(scratch, "theirs", name), { device: await init("js") });
      const { logits } = goldens.get(name)!;
      expect(await logitsOf(model), name).toAgreeWith(logits, within(logits));
    }
  });

  it("reads what is written here", async () => {
    const folders = names.map((name) => join(scratch, "ours", name));
    for (const [i, folder] of folders.entries()) await savePretrained(await tiny(names[i]!, "js"), folder);
    const stdio = ["ignore", "pipe", "ignore"] as const;
    const said = execFileSync(torchPython!, [PROGRAM, "read", ...folders], { encoding: "utf8", stdio: [...stdio] });
    for (const [i, logits] of (JSON.parse(said) as number[][]).entries()) {
      const { logits: expected } = goldens.get(names[i]!)!;
      expect(logits, names[i]).toAgreeWith(expected, within(expected));
    }
  });
});

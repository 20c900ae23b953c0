/** Adapters as files: what is written, and what can't be opened. `lora.test.ts` opens peft's, and ours in peft. */
import {
  inspectCheckpoint,
  loadCheckpoint,
  type MemoryFileSystem,
  memoryFileSystem,
  saveWeights,
} from "@opt/checkpoint";
import { Generator, init, type Tensor, tensor } from "@opt/core";
import { Linear, Sequential } from "@opt/nn";
import { expectCode } from "@opt/testkit";
import { beforeAll, expect, it } from "vitest";
import { SIZES, TinyTransformer } from "../../testing/tiny-transformer";
import { fromPretrained, languageModel, savePretrained } from "../index";
import { lora } from "./lora";
import { loadAdapter, saveAdapter } from "./peft-files";

beforeAll(() => init("js"));

async function configOf(fileSystem: MemoryFileSystem, path: string) {
  const file = await fileSystem.open(path, "read");
  const bytes = new Uint8Array(await file.size());
  await file.read(bytes, 0);
  return JSON.parse(new TextDecoder().decode(bytes));
}

async function write(fileSystem: MemoryFileSystem, path: string, value: object) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  const file = await fileSystem.open(path, "create", bytes.length);
  await file.write(bytes, 0);
  await file.finish();
}

const valuesOf = (model: Sequential | TinyTransformer) =>
  Object.entries(model.stateDict()).map(([name, tensor]) => [name, [...tensor.dataSync()]]);

it("what is saved opens with the same bits, under PEFT's names", async () => {
  const fileSystem = memoryFileSystem();
  const device = await init("js");
  const options = { rank: 2, alpha: 3, dropout: 0.1, dora: true, targets: ["q_proj", "v_proj"] };
  const model = lora(new TinyTransformer(SIZES, device), { ...options, generator: new Generator(7) });
  await saveAdapter(model, "adapter", { fileSystem, base: "tiny" });
  expect(await configOf(fileSystem, "adapter/adapter_config.json")).toMatchObject({
    ...{ peft_type: "LORA", base_model_name_or_path: "tiny", r: 2, lora_alpha: 3, lora_dropout: 0.1, use_dora: true },
    ...{ target_modules: ["q_proj", "v_proj"], fan_in_fan_out: false, bias: "none" },
  });
  const { tensors } = await inspectCheckpoint("adapter/adapter_model.safetensors", { fileSystem });
  expect(tensors.length).toBe(2 * 2 * 3);
  expect(tensors.map(({ name }) => name)).toContain("base_model.model.layers.1.v_proj.lora_magnitude_vector");
  const opened = await loadAdapter(new TinyTransformer(SIZES, device), "adapter", { fileSystem });
  expect(valuesOf(opened)).toEqual(valuesOf(model));
});

it.each([
  ["models/base", "models/base"],
  ["hf://owner/name@main", "owner/name"],
])("the base of a model from %s is %s", async (path, base) => {
  const fileSystem = memoryFileSystem();
  const config = { model_type: "gpt2", vocab_size: 5, n_positions: 8, n_embd: 4, n_layer: 1, n_head: 2 };
  await savePretrained(languageModel(config), path, { fileSystem });
  const { model } = await fromPretrained(path, { fileSystem });
  await saveAdapter(lora(model, { rank: 1, targets: ["c_attn"] }), "adapter", { fileSystem });
  expect(await configOf(fileSystem, "adapter/adapter_config.json")).toMatchObject({ base_model_name_or_path: base });
});

const net = () => new Sequential(new Linear(4, 4), new Linear(4, 4));

it("renames layers, and replaces a folder where it is told to", async () => {
  const fileSystem = memoryFileSystem();
  const model = lora(net(), { rank: 1, targets: ["0"] });
  const there = { rename: (name: string) => `h.${name}.attn.c_attn`, fileSystem };
  await saveAdapter(model, "adapter", there);
  await expectCode("DUPLICATE", () => saveAdapter(model, "adapter", there));
  await saveAdapter(model, "adapter", { ...there, overwrite: true });
  const config = await configOf(fileSystem, "adapter/adapter_config.json");
  // The other layer ends so, too: only its whole name means one.
  expect([config.target_modules, config.fan_in_fan_out]).toEqual([["h.0.attn.c_attn"], true]);
  const here = { rename: (name: string) => name.split(".")[1]!, fileSystem };
  expect(valuesOf(await loadAdapter(net(), "adapter", here)).length).toBe(6);
  await expectCode("BAD_STATE", () => loadAdapter(net(), "adapter", { fileSystem }));
});

it("rejects models without adapters or with several kinds, and files of something else", async () => {
  const fileSystem = memoryFileSystem();
  await expectCode("BAD_STATE", () => saveAdapter(net(), "adapter", { fileSystem }));
  const model = lora(net(), { rank: 1, targets: ["0"] });
  await saveAdapter(model, "adapter", { fileSystem });
  await expectCode("UNSUPPORTED", () => saveAdapter(lora(model, { rank: 2, targets: ["1"] }), "other", { fileSystem }));
  await expectCode("BAD_STATE", () => loadAdapter(new Sequential(new Linear(8, 8)), "adapter", { fileSystem }));
  const config = await configOf(fileSystem, "adapter/adapter_config.json");
  for (const other of [{ use_rslora: true }, { bias: "all" }, { rank_pattern: { a: 2 } }, { peft_type: "IA3" }]) {
    await write(fileSystem, "adapter/adapter_config.json", { ...config, ...other });
    await expectCode("BAD_STATE", () => loadAdapter(net(), "adapter", { fileSystem }));
  }
  await expectCode("MISSING", () => loadAdapter(net(), "nowhere", { fileSystem }));
});

it("an adapter that does not fit changes nothing, and one of layer 0 leaves 1.0 alone", async () => {
  const fileSystem = memoryFileSystem();
  await saveAdapter(lora(net(), { rank: 1, targets: ["0"] }), "adapter", { fileSystem });
  const wider = new Sequential(new Linear(4, 8), new Linear(8, 4));
  const before = valuesOf(wider);
  await expectCode("BAD_STATE", () => loadAdapter(wider, "adapter", { fileSystem }));
  expect(valuesOf(wider)).toEqual(before);
  expect(wider.parameters({ trainable: true }).length).toBe(4);
  const nested = await loadAdapter(new Sequential(new Linear(4, 4), net()), "adapter", { fileSystem });
  expect(nested.parameters({ trainable: true }).length).toBe(2);
});

it.each([false, true])("an adapter that lacks a tensor, or has another one, is rejected (DoRA: %s)", async (dora) => {
  const fileSystem = memoryFileSystem();
  await saveAdapter(lora(net(), { rank: 2, targets: ["0", "1"], dora }), "adapter", { fileSystem });
  const path = "adapter/adapter_model.safetensors";
  const { tensors } = await loadCheckpoint(path, { fileSystem });
  const { length } = Object.keys(tensors);
  expect(length).toBe(dora ? 6 : 4);
  const rejected = async (changed: Record<string, Tensor>) => {
    await saveWeights(path, changed, { fileSystem, overwrite: true });
    await expectCode("BAD_STATE", () => loadAdapter(net(), "adapter", { fileSystem }));
  };
  for (const [name, value] of Object.entries(tensors)) {
    const { [name]: _, ...others } = tensors;
    for (const other of [{}, { [name]: tensor([1]) }, { [`${name}s`]: value }]) await rejected({ ...others, ...other });
  }
  await rejected({ ...tensors, "base_model.model.0.weight": tensor([1]) });
});

/** Adapters in PEFT's files: `adapter_config.json` and `adapter_model.safetensors`. */
import type { OpenFolderOptions } from "@opt/checkpoint";
import { check, checkOptions, type Shape, show, type Tensor, tidy } from "@opt/core";
import type { Module } from "@opt/nn";
import type { LanguageModel } from "../decoder/language-model";
import { OPENING, Place } from "../pretrained/place";
import { leafOf, linearLayers } from "./linear-layers";
import { type AdapterSettings, adaptedLayers, lora, settingsOf } from "./lora";

export interface SaveAdapterOptions extends Pick<OpenFolderOptions, "fileSystem"> {
  /** Replaces an adapter in the folder. Default false. */
  readonly overwrite?: boolean;
  /** The base's name or path, for who opens the adapter. Default: what `fromPretrained` was given. */
  readonly base?: string;
  /** PEFT's name of a layer from the one that it has here; by default they are equal. */
  readonly rename?: (name: string) => string;
}

export interface LoadAdapterOptions extends OpenFolderOptions {
  /** A layer's name here from the one in the file. */
  readonly rename?: (name: string) => string;
}

const PREFIX = "base_model.model.";
const PART = /^(?:(.+)\.)(lora_A\.weight|lora_B\.weight|lora_magnitude_vector)$/;

const [CONFIG, WEIGHTS] = ["adapter_config.json", "adapter_model.safetensors"];

/** Fields that change no number of an adapter whose tensors are there. Of others only what means "off" is taken. */
const HARMLESS = new Set(
  (
    "r lora_alpha lora_dropout use_dora peft_type peft_version task_type auto_mapping base_model_name_or_path revision " +
    "inference_mode fan_in_fan_out target_modules exclude_modules layers_to_transform layers_pattern init_lora_weights " +
    "loftq_config eva_config corda_config lora_ga_config megatron_config megatron_core qalora_group_size runtime_config " +
    "ensure_weight_tying"
  ).split(" "),
);
const isOff = (value: unknown) =>
  [null, false, "none"].some((off) => off === value) || (typeof value === "object" && Object.keys(value!).length === 0);

/**
 * Saves the adapters of a model as PEFT does: `PeftModel.from_pretrained(base, folder)` opens them. The base's weights are not in it.
 *
 * @throws OptError BAD_STATE for a model without adapters; UNSUPPORTED for adapters of several ranks; DUPLICATE, IO
 * @example
 * const model = lora(new Sequential(new Linear(4, 4), new Linear(4, 2)), { rank: 2, targets: ["0"] });
 * await saveAdapter(model, "adapter", { fileSystem: memoryFileSystem() });
 */
export async function saveAdapter(model: Module, folder: string, options: SaveAdapterOptions = {}): Promise<void> {
  const where = "saveAdapter";
  checkOptions(where, options, { overwrite: "boolean", base: "string", rename: "function", fileSystem: "any" });
  const read = (model as Partial<LanguageModel>).origin?.path.replace(/^hf:\/\/([^@]+).*/, "$1");
  const { overwrite, base = read ?? null, rename = (name: string) => name } = options;
  const layers = adaptedLayers(model);
  const [first] = layers.values();
  check(first !== undefined, "BAD_STATE", where, () => "the model has no adapters.", "Call lora first.");
  const { rank, alpha, dropout, dora } = settingsOf(first);
  const kinds = new Set([...layers.values()].map((layer) => JSON.stringify(settingsOf(layer))));
  check(kinds.size === 1, "UNSUPPORTED", where, () => "all layers must have one rank and alpha.", "Call lora once.");
  const targets = targetsOf([...linearLayers(model).keys()].map(rename), [...layers.keys()].map(rename));
  const config = {
    ...{ peft_type: "LORA", task_type: "CAUSAL_LM", base_model_name_or_path: base, inference_mode: true, bias: "none" },
    ...{ r: rank, lora_alpha: alpha, lora_dropout: dropout, use_dora: dora, target_modules: targets },
    // GPT-2's Conv1D has weights [in, out]; those of adapters are as elsewhere.
    fan_in_fan_out: targets.every((target) => /^c_(attn|proj|fc)$/.test(leafOf(target))),
  };
  const tensors: Record<string, Tensor> = {};
  for (const [name, tensor] of model.namedTensors()) {
    const [, layer, part] = PART.exec(name) ?? [];
    if (layer !== undefined && layers.has(layer)) tensors[`${PREFIX}${rename(layer)}.${part}`] = tensor;
  }
  const place = await Place.open(folder, { fileSystem: options.fileSystem });
  await place.write(WEIGHTS, tensors, { [CONFIG]: config }, overwrite);
}

/** Their last parts where these mean no other layer, for people; else whole names. */
function targetsOf(all: readonly string[], names: readonly string[]): string[] {
  const leaves = new Set(names.map(leafOf));
  const meant = all.filter((name) => leaves.has(leafOf(name)));
  return meant.length === names.length ? [...leaves] : [...names];
}

/**
 * Opens an adapter that PEFT or `saveAdapter` has saved: freezes the model, and adds the adapters as `lora` does. They are trained on.
 *
 * @returns the model
 * @throws OptError BAD_STATE for another kind of adapter, or one of another base; MISSING, CORRUPT, IO
 * @example
 * const fileSystem = memoryFileSystem();
 * const net = () => new Sequential(new Linear(4, 4), new Linear(4, 2));
 * await saveAdapter(lora(net(), { rank: 2, targets: ["0"] }), "adapter", { fileSystem });
 * const model = await loadAdapter(net(), "adapter", { fileSystem });
 */
export async function loadAdapter<M extends Module>(
  model: M,
  folder: string,
  options: LoadAdapterOptions = {},
): Promise<M> {
  const where = "loadAdapter";
  checkOptions(where, options, { ...OPENING, rename: "function" });
  const { rename = (name: string) => name, ...opening } = options;
  const { loadCheckpoint } = await import("@opt/checkpoint");
  const place = await Place.open(folder, opening);
  const settings = settingsFrom(place.under(CONFIG), await place.json<Record<string, unknown>>(CONFIG));
  const { tensors } = await loadCheckpoint(place.under(WEIGHTS), { fileSystem: place.fileSystem });
  try {
    const state: Record<string, Tensor> = {};
    const layers = new Set<string>();
    for (const [name, tensor] of Object.entries(tensors)) {
      const [, layer, part] = PART.exec(name.startsWith(PREFIX) ? name.slice(PREFIX.length) : "") ?? [];
      const cure = "Only adapters of linear layers can be loaded.";
      check(layer !== undefined, "BAD_STATE", where, () => `${name} is no part of an adapter of a linear layer.`, cure);
      layers.add(rename(layer));
      state[`${rename(layer)}.${part}`] = tensor;
    }
    const known = linearLayers(model);
    const strange = [...layers].find((name) => !known.has(name));
    const problem = () => `the adapter is of a layer ${strange}, which the model lacks.`;
    check(strange === undefined, "BAD_STATE", where, problem, "Load the base that it was trained on, or rename.");
    const weightShape = (name: string) => tidy(() => known.get(name)!.weight.shape);
    const shapes = [...layers].flatMap((name) => shapesOf(name, weightShape(name), settings));
    const wrong = shapes.find(([name, shape]) => String(state[name]?.shape) !== String(shape));
    const found = () => `${wrong![0]} must be [${wrong![1]}], got ${show(state[wrong![0]]?.shape)}.`;
    check(wrong === undefined, "BAD_STATE", where, found, "Load the base that it was trained on.");
    lora(model, { ...settings, targets: [...layers].map(whole) });
    model.loadStateDict(state, { strict: false });
  } finally {
    for (const tensor of Object.values(tensors)) tensor.dispose();
  }
  return model;
}

/** This layer alone. */
const whole = (name: string) => new RegExp(`^${name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`);

/** Names and shapes of an adapter's tensors, beside a weight [out, in]. */
function shapesOf(layer: string, [out, into]: Shape, { rank, dora }: AdapterSettings): [string, Shape][] {
  const shapes = { "lora_A.weight": [rank, into!], "lora_B.weight": [out!, rank] };
  const own = dora ? { ...shapes, lora_magnitude_vector: [out!] } : shapes;
  return Object.entries(own).map(([part, shape]) => [`${layer}.${part}`, shape]);
}

/** @throws OptError BAD_STATE, which names a field that would change numbers */
function settingsFrom(where: string, config: Record<string, unknown>): AdapterSettings {
  const kind = config?.peft_type;
  check(kind === "LORA", "BAD_STATE", where, () => `peft_type must be LORA, got ${show(kind)}.`);
  const other = Object.entries(config).find(([name, value]) => !HARMLESS.has(name) && !isOff(value));
  const problem = () => `${other![0]} is not known here, got ${show(other![1])}.`;
  check(other === undefined, "BAD_STATE", where, problem, "Train without it.");
  const { r: rank, lora_alpha: alpha, lora_dropout: dropout = 0, use_dora: dora = false } = config;
  return { rank, alpha, dropout, dora } as AdapterSettings; // `lora` checks them
}

/**
 * Hugging Face's GPT-2 layout and ours. There each weight of a block is [in, out] (its `Conv1D`), here [out, in], and names differ;
 * nothing else does. A checkpoint may say `transformer.` before each name; causal masks and the tied head may be in it or not.
 */
import { check, OptError, type Tensor } from "@opt/core";
import type { StateDict } from "@opt/nn";

/** Names of a block there and here. */
const LAYERS: readonly (readonly [theirs: string, ours: string])[] = [
  ["ln_1", "ln1"],
  ["attn.c_attn", "qkv"],
  ["attn.c_proj", "proj"],
  ["ln_2", "ln2"],
  ["mlp.c_fc", "fc"],
  ["mlp.c_proj", "out"],
];
const ENDS: readonly (readonly [theirs: string, ours: string])[] = [
  ["wte.weight", "tok.weight"],
  ["wpe.weight", "pos.weight"],
  ["ln_f.weight", "ln.weight"],
  ["ln_f.bias", "ln.bias"],
  ["lm_head.weight", "head.weight"],
];

/** Buffers of old files: the causal mask, and what it fills in. */
const MASK = /^h\.\d+\.attn\.(masked_)?bias$/;
const isTransposed = (theirs: string) => /\.c_(attn|proj|fc)\.weight$/.test(theirs);

function renamed(name: string, from: 0 | 1): string | undefined {
  const to = from === 0 ? 1 : 0;
  const end = ENDS.find((pair) => pair[from] === name);
  if (end) return end[to];
  const block = (from === 0 ? /^h\.(\d+)\.(.+)\.(weight|bias)$/ : /^blocks\.(\d+)\.(.+)\.(weight|bias)$/).exec(name);
  const layer = block && LAYERS.find((pair) => pair[from] === block[2]);
  return layer ? `${from === 0 ? "blocks" : "h"}.${block[1]}.${layer[to]}.${block[3]}` : undefined;
}

/** Which file of Hugging Face's holds what, for sizes: the extents of a model. */
export interface Gpt2Sizes {
  readonly tokens: number;
  readonly width: number;
  readonly length: number;
  readonly blocks: number;
}

/** Their tensors under our names, for `Gpt` with `gpt2: true`. They are the caller's. @throws OptError BAD_STATE for a name that GPT-2 does not have */
export function fromGpt2(state: Readonly<StateDict>): StateDict {
  const ours: Record<string, Tensor> = {};
  for (const [given, tensor] of Object.entries(state)) {
    const name = given.replace(/^transformer\./, "");
    if (MASK.test(name)) continue;
    const own = renamed(name, 0);
    if (own === undefined) {
      const advice = "Give the model.safetensors of a GPT-2 (GPT2Model or GPT2LMHeadModel).";
      throw new OptError("BAD_STATE", "fromGpt2", `every name must be one of GPT-2's, got ${given}.`, advice);
    }
    ours[own] = isTransposed(name) ? tensor.transpose() : tensor.detach();
  }
  const { "tok.weight": table, "pos.weight": places } = ours;
  const advice = "Give the model.safetensors of a GPT-2.";
  check(table && places, "BAD_STATE", "fromGpt2", () => "wte.weight and wpe.weight must be there.", advice);
  ours["head.weight"] ??= table.detach();
  return ours;
}

/** Our tensors under their names, as `transformers` saves them: without the tied head. */
export function toGpt2(state: Readonly<StateDict>): StateDict {
  const theirs: Record<string, Tensor> = {};
  for (const [name, tensor] of Object.entries(state)) {
    if (name === "head.weight") continue;
    const their = renamed(name, 1)!;
    theirs[`transformer.${their}`] = isTransposed(their) ? tensor.transpose() : tensor.detach();
  }
  return theirs;
}

const PEFT = "base_model.model.transformer.";
const ADAPTER = /^(.+)\.(lora_[AB]\.weight)$/;

/** A name of an adapter's matrix, by that of its layer. */
function renamedAdapter(name: string, from: 0 | 1): string | undefined {
  const [, layer, part] = ADAPTER.exec(name) ?? [];
  return layer && renamed(`${layer}.weight`, from)?.replace(/weight$/, part!);
}

/** The adapters' tensors as PEFT names them: [rank, in] and [out, rank]. */
export function toPeft(state: Readonly<StateDict>): StateDict {
  const names = Object.entries(state).map(([name, tensor]) => [renamedAdapter(name, 1), tensor] as const);
  return Object.fromEntries(names.flatMap(([name, tensor]) => (name ? [[PEFT + name, tensor]] : [])));
}

/** Their tensors under our names; others are left out. */
export function fromPeft(state: Readonly<StateDict>): StateDict {
  const own = Object.entries(state).filter(([name]) => name.startsWith(PEFT));
  return Object.fromEntries(
    own.flatMap(([name, tensor]) => {
      const ours = renamedAdapter(name.slice(PEFT.length), 0);
      return ours ? [[ours, tensor]] : [];
    }),
  );
}

/** The sizes of a model under our names. Heads cannot be told from tensors: `config.json` says them. */
export function sizesOf(state: Readonly<StateDict>): Gpt2Sizes {
  const [tokens, width] = state["tok.weight"]!.shape as [number, number];
  const blocks = Object.keys(state).filter((name) => /^blocks\.\d+\.ln1\.weight$/.test(name)).length;
  return { tokens, width, length: state["pos.weight"]!.shape[0]!, blocks };
}

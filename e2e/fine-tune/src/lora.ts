/**
 * Low-rank adaptation (Hu et al. 2021): W stays as it is, and x A^T B^T alpha / rank is added to what it gives. A is drawn as a linear
 * layer's weight is, B begins as 0, so that the first step begins where the base ended. Names and shapes are those of PEFT's files.
 */
import { check, type Generator, noGrad, type Tensor, tidy } from "@opt/core";
import { type Layer, Linear, Module, type StateDict, zeros } from "@opt/nn";

export interface LoraOptions {
  readonly rank: number;
  readonly alpha: number;
  readonly generator?: Generator | undefined;
}

class LoraLinear extends Module {
  readonly loraA: Linear;
  readonly loraB: Linear;
  private readonly scale: number;

  constructor(
    readonly base: Linear,
    { rank, alpha, generator }: LoraOptions,
  ) {
    super();
    const [outFeatures, inFeatures] = base.weight.shape as [number, number];
    const { device } = base.weight;
    for (const parameter of base.parameters()) parameter.requiresGrad = false;
    this.loraA = new Linear(inFeatures, rank, { bias: false, device, generator });
    this.loraB = new Linear(rank, outFeatures, { bias: false, device });
    zeros(this.loraB.weight);
    this.scale = alpha / rank;
  }

  forward(x: Tensor): Tensor {
    return tidy(() => this.base.forward(x).add(this.loraB.forward(this.loraA.forward(x)).mul(this.scale)));
  }

  /** W + B A alpha / rank, written into the base, which is given back. */
  merge(): Linear {
    const { weight } = this.base;
    tidy(() => noGrad(() => weight.set(weight.add(this.loraB.weight.matmul(this.loraA.weight).mul(this.scale)))));
    for (const parameter of [this.loraA.weight, this.loraB.weight]) parameter.dispose();
    return this.base;
  }
}

/** A model whose blocks have a layer that is adapted. */
interface Adaptable extends Module {
  readonly blocks: readonly { qkv: Layer }[];
}

/**
 * Freezes the model and puts an adapter around each block's projection to queries, keys and values: PEFT's `c_attn`.
 *
 * @throws OptError BAD_STATE if it has adapters
 */
export function addLora(model: Adaptable, options: LoraOptions): void {
  const isPlain = model.blocks.every(({ qkv }) => qkv instanceof Linear);
  check(isPlain, "BAD_STATE", "addLora", () => "the model has adapters already.", "Merge them first.");
  for (const parameter of model.parameters()) parameter.requiresGrad = false;
  for (const block of model.blocks) block.qkv = new LoraLinear(block.qkv as Linear, options);
}

/** Takes the adapters out again; the weights have what they learned. */
export function mergeLora(model: Adaptable): void {
  for (const block of model.blocks) if (block.qkv instanceof LoraLinear) block.qkv = block.qkv.merge();
}

const OURS = /^blocks\.(\d+)\.qkv\.lora([AB])\.weight$/;

/** The adapters' tensors as PEFT names them: [rank, in] and [out, rank]. */
export function toPeft(state: Readonly<StateDict>): StateDict {
  return Object.fromEntries(
    Object.entries(state).flatMap(([name, tensor]) => {
      const found = OURS.exec(name);
      if (found === null) return [];
      return [[`base_model.model.transformer.h.${found[1]}.attn.c_attn.lora_${found[2]}.weight`, tensor]];
    }),
  );
}

/** Their tensors under our names; others are left out. */
export function fromPeft(state: Readonly<StateDict>): StateDict {
  const theirs = /^base_model\.model\.transformer\.h\.(\d+)\.attn\.c_attn\.lora_([AB])\.weight$/;
  return Object.fromEntries(
    Object.entries(state).flatMap(([name, tensor]) => {
      const found = theirs.exec(name);
      return found === null ? [] : [[`blocks.${found[1]}.qkv.lora${found[2]}.weight`, tensor]];
    }),
  );
}

/** Adapters of low rank: small matrices beside frozen linear layers. Their properties have PEFT's names, and so has the state. */
import { check, checkOptions, checkValue, Generator, keep, noGrad, norm, type Tensor, tidy } from "@opt/core";
import { Dropout, Linear, linear, type Module, zeros } from "@opt/nn";
import { isOfAdapter, linearLayers, type Target, targeted } from "./linear-layers";
import { isQuantized } from "./quantize";

export interface LoraOptions {
  /** Rows of A and columns of B. Default 8. */
  readonly rank?: number;
  /** The product counts alpha / rank times. Default 16. */
  readonly alpha?: number;
  /** Share of the input's elements that A does not see in training. Default 0. */
  readonly dropout?: number;
  /** Linear layers: `"q_proj"` is every layer whose name ends so, a RegExp matches dotted names. */
  readonly targets: readonly Target[];
  /** Trains the length of each row of the weight, too (DoRA). Default false. */
  readonly dora?: boolean;
  /** Draws A, and what is dropped; by default the generator that `manualSeed` seeds. */
  readonly generator?: Generator;
}

const PARTS = ["lora_A", "lora_B", "lora_magnitude_vector", "lora_dropout"] as const;

/** What an adapter adds to its layer, in PEFT's words. */
interface Parts {
  lora_A: Linear;
  lora_B: Linear;
  lora_magnitude_vector?: Tensor;
  lora_dropout?: Dropout;
}

type Adapted = Linear & Parts;

export type AdapterSettings = Required<Pick<LoraOptions, "rank" | "alpha" | "dropout" | "dora">>;

interface Adapter {
  readonly settings: AdapterSettings;
  /** Takes the adapter out of the layer's forward; undefined while it is merged. */
  remove: (() => void) | undefined;
  /** Of a merged layer: its parts, and the weight as it was. */
  merged?: { readonly parts: Parts; readonly weight: Tensor };
}

const adapters = new WeakMap<Linear, Adapter>();

/**
 * Freezes a model, and adds to each linear layer x W^T that `targets` name the product x A^T B^T alpha / rank of two small matrices, which
 * are trained (LoRA, Hu et al. 2021). A begins as a linear layer's weight, B as 0: the model begins where it was. With `dora` the rows of
 * W + B A alpha / rank are scaled to lengths that are trained, too (Liu et al. 2024). Numbers and names are those of peft 0.21. Matrices of
 * f16 and bf16 layers are f32. Make optimizers and compiled functions afterwards.
 *
 * @returns the model
 * @throws OptError BAD_ARGUMENT for a target that matches no linear layer; BAD_STATE for a layer that has an adapter
 * @example
 * class Attention extends Module {
 *   q_proj = new Linear(8, 8);
 *   v_proj = new Linear(8, 8);
 *   forward(x: Tensor): Tensor {
 *     return this.q_proj.forward(x).softmax(-1).mul(this.v_proj.forward(x));
 *   }
 * }
 * const model = lora(new Attention(), { rank: 2, targets: ["q_proj", "v_proj"] });
 * const optimizer = new AdamW(model.namedParameters()); // trains q_proj.lora_A.weight, q_proj.lora_B.weight, ...
 */
export function lora<M extends Module>(model: M, options: LoraOptions): M {
  checkOptions("lora", options, {
    ...{ rank: "number", alpha: "number", dropout: "number", targets: "array", dora: "boolean", generator: "object" },
  });
  const { rank = 8, alpha = 16, dropout = 0, dora = false, generator, targets } = options;
  checkValue(Number.isInteger(rank) && rank >= 1, "lora", "rank", "an integer >= 1", rank, "Use 8.");
  checkValue(Number.isFinite(alpha), "lora", "alpha", "a number", alpha, "Use 16.");
  const layers = targeted("lora", model, targets);
  for (const [name, layer] of layers) {
    const isPlain = adapters.get(layer)?.remove === undefined;
    check(isPlain, "BAD_STATE", "lora", () => `${name} has an adapter already.`, "Merge it first.");
  }
  for (const [name, each] of model.namedParameters()) if (!isOfAdapter(name)) each.requiresGrad = false;
  for (const layer of layers.values()) add(layer, { rank, alpha, dropout, dora }, generator);
  return model;
}

function add(layer: Linear, settings: AdapterSettings, generator: Generator | undefined): void {
  const { rank, dropout, dora } = settings;
  const [outFeatures, inFeatures, device, dtype] = tidy(() => {
    const { shape, device, dtype } = layer.weight;
    return [shape[0]!, shape[1]!, device, dtype === "f64" ? dtype : "f32"] as const;
  });
  const options = { bias: false, device, dtype, ...(generator && { generator }) } as const;
  const parts: Parts = {
    lora_A: new Linear(inFeatures, rank, options),
    lora_B: new Linear(rank, outFeatures, { bias: false, device, dtype, generator: new Generator(0) }), // draws nothing
  };
  zeros(parts.lora_B.weight);
  if (dropout > 0) parts.lora_dropout = new Dropout(dropout, generator && { generator });
  if (dora) {
    parts.lora_magnitude_vector = tidy(() => keep(noGrad(() => lengthsOf(layer.weight.to(dtype)).clone())));
    parts.lora_magnitude_vector.requiresGrad = true;
  }
  adapters.get(layer)?.merged?.weight.dispose();
  attach(layer, { settings, remove: undefined }, parts);
}

function attach(layer: Linear, adapter: Adapter, parts: Parts): void {
  for (const part of [parts.lora_A, parts.lora_B, parts.lora_dropout]) part?.train(layer.training);
  Object.assign(layer, parts);
  delete adapter.merged;
  const { rank, alpha } = adapter.settings;
  adapter.remove = layer.onForward((_, [x], output) => forward(layer as Adapted, alpha / rank, x, output));
  adapters.set(layer, adapter);
}

/** In peft's order of operations. */
function forward(layer: Adapted, scale: number, x: Tensor, output: Tensor): Tensor {
  return tidy(() => {
    const { lora_A, lora_B, lora_dropout, lora_magnitude_vector: magnitude, bias } = layer;
    const isDropped = lora_dropout?.training ?? false;
    const seen = isDropped ? lora_dropout!.forward(x) : x;
    const low = lora_B.forward(lora_A.forward(seen.to(lora_A.weight.dtype)));
    if (magnitude === undefined) return output.add(low.mul(scale).to(output.dtype));
    // The lengths are constants for the gradient (section 4.3 of the paper).
    const factor = magnitude.div(noGrad(() => lengthsOf(adaptedWeight(layer, scale))));
    const base = isDropped ? linear(seen, layer.weight) : bias === null ? output : output.sub(bias);
    return output.add(base.mul(factor.sub(1)).add(low.mul(factor).mul(scale)).to(output.dtype));
  });
}

const lengthsOf = (weight: Tensor) => norm(weight, 2, [1]);

/** W + B A alpha / rank, in the adapter's dtype. */
function adaptedWeight({ weight, lora_A, lora_B }: Adapted, scale: number): Tensor {
  return weight.to(lora_A.weight.dtype).add(lora_B.weight.matmul(lora_A.weight).mul(scale));
}

/**
 * Writes adapters into their layers' weights, and takes them out: the model computes the same up to rounding, at the base's speed, and its
 * state has the base's names. Each adapted layer keeps a copy of its weight for `unmerge`, until `lora` is called again.
 *
 * @returns the model
 * @throws OptError BAD_STATE for a model without adapters; UNSUPPORTED for quantized layers
 * @example
 * const model = lora(new Sequential(new Linear(4, 4), new Linear(4, 2)), { targets: ["0"] });
 * merge(model); // 0.weight has what the adapter learned
 * unmerge(model); // the same bits as before
 */
export function merge<M extends Module>(model: M): M {
  const layers = [...adaptedLayers(model)];
  check(layers.length > 0, "BAD_STATE", "merge", () => "the model has no adapters.", "Call lora first.");
  const quantized = layers.find(([, layer]) => isQuantized(layer))?.[0];
  const cure = "Load the adapter on the model without quantize, and merge there.";
  check(quantized === undefined, "UNSUPPORTED", "merge", () => `${quantized}'s weight is quantized.`, cure);
  for (const [, layer] of layers) {
    const adapter = adapters.get(layer)!;
    const { lora_magnitude_vector, weight } = layer;
    const { rank, alpha } = adapter.settings;
    const before = keep(tidy(() => weight.detach().clone()));
    tidy(() =>
      noGrad(() => {
        const sum = adaptedWeight(layer, alpha / rank);
        const factor = lora_magnitude_vector?.div(lengthsOf(sum)).unsqueeze(1);
        weight.set((factor === undefined ? sum : sum.mul(factor)).to(weight.dtype));
      }),
    );
    adapter.remove!();
    adapter.remove = undefined;
    const parts = Object.fromEntries(PARTS.flatMap((name) => (layer[name] ? [[name, layer[name]]] : [])));
    for (const name of PARTS) Reflect.deleteProperty(layer, name);
    adapter.merged = { parts: parts as unknown as Parts, weight: before };
  }
  return model;
}

/**
 * Puts back the weights that `merge` has changed, bit for bit, and the adapters beside them. Optimizers of the adapters go on.
 *
 * @returns the model
 * @throws OptError BAD_STATE for a model without merged adapters
 */
export function unmerge<M extends Module>(model: M): M {
  const layers = [...linearLayers(model).values()].filter((layer) => adapters.get(layer)?.merged);
  check(layers.length > 0, "BAD_STATE", "unmerge", () => "the model has no merged adapters.", "Call merge first.");
  for (const layer of layers) {
    const adapter = adapters.get(layer)!;
    const { parts, weight } = adapter.merged!;
    layer.weight.set(weight);
    weight.dispose();
    attach(layer, adapter, parts);
  }
  return model;
}

/** Layers with adapters that are not merged, by name. */
export function adaptedLayers(model: Module): Map<string, Adapted> {
  const all = [...linearLayers(model)];
  return new Map(all.filter(([, layer]) => adapters.get(layer)?.remove !== undefined) as [string, Adapted][]);
}

export const settingsOf = (layer: Linear): AdapterSettings => adapters.get(layer)!.settings;

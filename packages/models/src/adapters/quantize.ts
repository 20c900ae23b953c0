/** Frozen linear layers whose weights are stored in 8 or 4 bits (QLoRA's base), and unpacked for each product. */
import {
  check,
  checkOptions,
  checkValue,
  gather,
  keep,
  markReplaced,
  noGrad,
  show,
  type Tensor,
  tensor,
  tidy,
  withGradient,
} from "@opt/core";
import { buffer, Linear, type Module } from "@opt/nn";
import { leafOf, linearLayers, type Target, targeted } from "./linear-layers";

/** `q8`: whole numbers -127 to 127 times absmax / 127. `nf4`: the 16 numbers of QLoRA's table times absmax, two in a byte. */
export type Quantization = "q8" | "nf4";

export interface QuantizeOptions {
  /** Layers, as `lora` names them; by default all linear layers but `lm_head` and those whose weight is another layer's, too. */
  readonly targets?: readonly Target[];
}

/** Values that share a scale. */
const BLOCK = 64;

/** Quantiles of the normal distribution (Dettmers et al. 2023, appendix E): those of bitsandbytes, in f32. */
const NF4 = [
  ...[-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334],
  ...[-0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224],
  ...[0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1],
];
const BOUNDS = NF4.slice(1).map((value, i) => (value + NF4[i]!) / 2);
/** Both values of a byte: the first is in the high bits, as bitsandbytes packs them. */
const PAIRS = Float32Array.from({ length: 512 }, (_, i) => NF4[i % 2 === 0 ? i >> 5 : (i >> 1) & 15]!);

/** A layer's weight as it is stored. */
class QuantizedLinear extends Linear {
  /** u8 [blocks, 64], or [blocks, 32] where two share a byte. */
  declare readonly weight_codes: Tensor;
  /** f32 [blocks, 1]. */
  declare readonly weight_scales: Tensor;
  /** Of `nf4`: both values of each byte. */
  declare readonly weight_table?: Tensor;
  declare readonly weight_shape: readonly [outFeatures: number, inFeatures: number];

  /** The layer's own keeps the whole weight until backward; this one unpacks it again. */
  override forward(x: Tensor): Tensor {
    return tidy(() => {
      const [outFeatures, inFeatures] = this.weight_shape;
      const fits = x.shape.at(-1) === inFeatures;
      const problem = () => `the last axis of the input must be ${inFeatures}, got shape [${x.shape}].`;
      check(fits, "BAD_SHAPE", "Linear", problem, "Reshape the input.");
      const rows = x.reshape([x.size / inFeatures, inFeatures]);
      const product = withGradient(
        noGrad(() => rows.matmul(unpacked(this), { transposeB: true })),
        [rows],
        (g) => [tidy(() => g.matmul(unpacked(this)).to(rows.dtype))],
      );
      const sum = this.bias === null ? product : product.add(this.bias);
      return sum.reshape([...x.shape.slice(0, -1), outFeatures]);
    });
  }

  override describe(): string {
    const [outFeatures, inFeatures] = this.weight_shape;
    return `inFeatures=${inFeatures}, outFeatures=${outFeatures}, bias=${this.bias !== null}, ${this.weight_table ? "nf4" : "q8"}`;
  }
}

// A property of Linear, so that TypeScript takes no accessor in the class.
Object.defineProperty(QuantizedLinear.prototype, "weight", {
  get(this: QuantizedLinear) {
    return unpacked(this);
  },
});

function unpacked({ weight_codes, weight_scales, weight_table, weight_shape }: QuantizedLinear): Tensor {
  return tidy(() => {
    const values =
      weight_table === undefined
        ? weight_codes.to("f32").sub(128)
        : gather(weight_table, weight_codes.to("i32")).reshape([weight_scales.size, BLOCK]);
    const size = weight_shape[0] * weight_shape[1];
    const all = values.mul(weight_scales).reshape([values.size]);
    return (all.size === size ? all : all.slice(0, size)).reshape(weight_shape);
  });
}

export const isQuantized = (layer: Linear): boolean => layer instanceof QuantizedLinear;

/**
 * Stores the weights of linear layers in blocks of 64 values, in place: `q8` takes 1.06 bytes a value, `nf4` 0.56. Each product unpacks its
 * weight and frees it again, also in backward. The model is frozen: train an adapter on it (`lora`). Layers compute in f32.
 *
 * @returns the model
 * @throws OptError BAD_ARGUMENT for a target that matches no linear layer; BAD_DTYPE unless weights are f32; BAD_STATE for layers with hooks,
 * adapters or computed weights; NOT_FINITE
 * @example
 * const model = await quantize(new Sequential(new Linear(64, 64), new Linear(64, 2)), "nf4", { targets: ["0"] });
 * lora(model, { targets: ["0"] });
 */
export async function quantize<M extends Module>(
  model: M,
  format: Quantization,
  options: QuantizeOptions = {},
): Promise<M> {
  const where = "quantize";
  checkValue(format === "q8" || format === "nf4", where, "the format", '"q8" or "nf4"', format);
  checkOptions(where, options, { targets: "array" });
  const layers = options.targets ? targeted(where, model, options.targets) : quantizable(model);
  for (const [name, layer] of layers) {
    const isPlain = Object.getPrototypeOf(layer) === Linear.prototype && !Object.hasOwn(layer, "forward");
    const cure = "Quantize first, then add adapters and hooks.";
    check(isPlain, "BAD_STATE", where, () => `${name} must be a plain Linear without hooks or adapters.`, cure);
    const { dtype } = layer.weight;
    const problem = () => `${name}'s weight must be f32, got ${dtype}.`;
    check(dtype === "f32", "BAD_DTYPE", where, problem, 'Use model.to("f32").');
  }
  model.freeze();
  let table: Tensor | undefined;
  for (const [name, layer] of layers) {
    const { weight } = layer;
    const { device } = weight;
    const { codes, scales } = packed(format, (await weight.data()) as Float32Array, name);
    if (format === "nf4") table ??= buffer(keep(tensor(PAIRS, { shape: [256, 2], device })), { persistent: false });
    Reflect.deleteProperty(layer, "weight");
    Object.setPrototypeOf(layer, QuantizedLinear.prototype);
    Object.assign(layer, {
      weight_shape: [...weight.shape],
      weight_codes: keep(tensor(codes, { shape: [scales.length, codes.length / scales.length], device })),
      weight_scales: keep(tensor(scales, { shape: [scales.length, 1], device })),
      ...(table && { weight_table: table }),
    });
    markReplaced(weight, null);
    weight.dispose();
  }
  return model;
}

function quantizable(model: Module): Map<string, Linear> {
  const holders = new Map<Tensor, number>();
  for (const [, each] of model.namedTensors()) holders.set(each, (holders.get(each) ?? 0) + 1);
  const isOwn = ([name, layer]: [string, Linear]) =>
    leafOf(name) !== "lm_head" && !isQuantized(layer) && holders.get(layer.weight) === 1;
  return new Map([...linearLayers(model)].filter(isOwn));
}

/** The last block is filled up with zeros. */
function packed(format: Quantization, weight: Float32Array, name: string) {
  const blocks = Math.ceil(weight.length / BLOCK);
  const scales = new Float32Array(blocks);
  const codes = new Uint8Array(format === "q8" ? blocks * BLOCK : (blocks * BLOCK) / 2);
  for (let block = 0; block < blocks; block++) {
    const values = weight.subarray(block * BLOCK, (block + 1) * BLOCK);
    let absmax = 0;
    for (const value of values) absmax = Math.max(absmax, Math.abs(value));
    check(Number.isFinite(absmax), "NOT_FINITE", "quantize", () => `${name}'s weight has ${show(absmax)}.`);
    const scale = Math.fround(format === "q8" ? absmax / 127 : absmax);
    scales[block] = scale;
    for (let i = 0; i < BLOCK; i++) {
      const share = scale === 0 ? 0 : (values[i] ?? 0) / scale;
      const at = block * BLOCK + i;
      if (format === "q8") codes[at] = 128 + Math.max(-127, Math.min(127, Math.round(share)));
      else codes[at >> 1]! |= nearestNf4(share) << (i % 2 === 0 ? 4 : 0);
    }
  }
  return { codes, scales };
}

function nearestNf4(share: number): number {
  let index = 0;
  for (const step of [8, 4, 2, 1]) if (share > BOUNDS[index + step - 1]!) index += step;
  return index;
}

/** State packed in blocks: in 8 or 24 bits. Programs enable it, so that bundles of others do not contain it. */
import type { Slice } from "../../backend/memory";
import { arena } from "../../create";
import { check } from "../../errors/errors";
import { cast } from "../../ops";
import { isPacked, type PackedDType, packedBytes } from "../../rule/codebook";
import { packedUpdate } from "../../rule/packed";
import type { Rule } from "../../rule/rule";
import { packing } from "../../rule/stored";
import { type PackedState, Tensor } from "../../tensor/tensor";
import { type Shape, sizeOf } from "../../values/shape";
import { PACK, UNPACK } from "./packing-rules";
import { type StatePacking, stateKey, stateKeys, statePacking, wholeShape } from "./state";

/** State that is stored in the bytes of a u8 tensor. */
class PackedTensor implements PackedState {
  constructor(
    private readonly bytes: Tensor,
    readonly shape: Shape,
    readonly format: PackedDType,
  ) {}

  slice(): Slice {
    return { ...this.bytes.memorySlice(), length: sizeOf(this.shape) };
  }

  unpacked(): Tensor {
    const values = Tensor.empty(this.shape, "f32", this.bytes.device);
    this.#launch(UNPACK, values);
    values.storage.overwritten();
    return values;
  }

  pack(values: Tensor): void {
    this.#launch(PACK, values);
    this.bytes.storage.overwritten();
  }

  /** Launches a rule of float32 values and packed state. */
  #launch(rule: Rule, values: Tensor): void {
    const { device } = values;
    const kernel = device.kernel({ kind: "rule", rule, dtype: "f32", stored: ["f32", this.format] });
    device.launch({ kind: "rule", kernel, tensors: [[values.memorySlice(), this.slice()]], scalars: [] });
  }
}

/** Smaller whole parameters keep their state in float32. Source: bitsandbytes, `min_8bit_size`. */
const LEAST_PACKED = 4096;

const ofBlocks: StatePacking = {
  names: ["q8", "bf16x"],

  format(rule, key, param, name) {
    const { device } = param;
    // The format is that of the whole, so that parts at the ends of blocks have its bits.
    if (sizeOf(wholeShape(param.spanOf ?? param)) < LEAST_PACKED || !stateKeys(rule).includes(key)) return "f32";
    check(
      device.backend.packs,
      "UNSUPPORTED",
      device.name,
      () => `it has no kernels for stateDType ${name} yet.`,
      "Call enableQ8() of the device's package.",
    );
    if (name === "bf16x") return "bf16x";
    const unknown = rule.nonNegative?.find((name) => ![...rule.buffers, ...rule.scalars].includes(name));
    check(
      unknown === undefined,
      "BAD_ARGUMENT",
      `rule ${rule.name}`,
      () => `nonNegative must name buffers or scalars, got ${unknown}.`,
      "Name those of the rule.",
    );
    return rule.nonNegative?.some((buffer) => stateKey(buffer) === key) ? "uq8" : "q8";
  },

  zeros(runs, format, device) {
    if (!isPacked(format)) return undefined;
    const packed = runs.map((shapes) => shapes.map((shape) => [packedBytes(sizeOf(shape), format)]));
    const tensors = arena(packed, "u8", device);
    const shapes = runs.flat();
    tensors.forEach((tensor, i) => {
      tensor.packed = new PackedTensor(tensor, shapes[i]!, format);
    });
    return tensors;
  },

  pack(values, format) {
    const [bytes] = this.zeros([[values.shape]], format, values.device) ?? [];
    if (bytes === undefined) return undefined;
    bytes.packed!.pack(cast(values, "f32"));
    return bytes;
  },

  check(where, { stateDType, lazyMode }) {
    check(
      !isPacked(stateDType) || !lazyMode,
      "UNSUPPORTED",
      where,
      () => `lazyMode steps some rows, and stateDType ${stateDType} keeps blocks of 256 elements that rows share.`,
      "Give the table a group with another stateDType.",
    );
  },
};

/**
 * Lets every optimizer keep its state in 8 bits, by `stateDType: "q8"`: blocks of 256 elements by bitsandbytes' dynamic codebook. And in
 * 24 bits, by `stateDType: "bf16x"`: bfloat16 with 8 bits of correction.
 * `@opt/kernels-cpu`, `@opt/kernels-cuda` and `@opt/kernels-webgpu` call it; for "wasm" the one of `@opt/kernels-wasm` is called instead.
 *
 * @example
 * enableQ8();
 * const w = parameter(randn([64, 128]));
 * const optimizer = new AdamW([w], { stateDType: "q8" }); // 2.03 bytes of state an element, not 8
 */
export function enableQ8(): void {
  packing.update = packedUpdate;
  Object.assign(statePacking, ofBlocks);
}

/** Random calls with what PyTorch would be called: shapes with none, one or no elements, all float dtypes, special values. */
import { type CallInput, Random, type TorchCall } from "@opt/testkit";
import type { DType } from "../src/values/dtype";
import { sizeOf } from "../src/values/shape";

export type Shape = readonly number[];
type FloatDType = "f64" | "f32" | "f16" | "bf16";

const SPECIAL = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, -0, 1, -1];
/** Of what is computed in 16 bits, PyTorch rounds each step, and ours the result. */
const TOLERANCES: Readonly<Record<FloatDType, number>> = { f64: 1e-9, f32: 2e-4, f16: 1e-2, bf16: 8e-2 };

const ALL = ["f64", "f64", "f32", "f32", "bf16", "f16"] as const;

/** One call being drawn. */
export class Draw {
  readonly dtype: FloatDType;
  readonly special: boolean;

  /** @param dtypes one of which is drawn; without, of all, and every fourth call has special values */
  constructor(
    readonly random: Random,
    dtypes?: readonly FloatDType[],
  ) {
    this.dtype = random.pick(dtypes ?? ALL);
    this.special = random.below(4) === 0 && dtypes === undefined;
  }

  int(below: number): number {
    return this.random.below(below);
  }

  flip(): boolean {
    return this.int(2) === 0;
  }

  /** Also of no axes, and of no elements. */
  shape(most = 3, least = 0): number[] {
    const rank = least + this.int(most - least + 1);
    return Array.from({ length: rank }, () => (this.int(12) === 0 ? 0 : 1 + this.int(4)));
  }

  /** An axis of a shape, from the front or the end; of a number 0 or -1. */
  axis({ length }: Shape): number {
    const rank = Math.max(length, 1);
    return this.int(rank) - (this.flip() ? rank : 0);
  }

  /** Some axes of a shape in any order, from the front or the end. */
  axes({ length }: Shape): number[] {
    const all = Array.from({ length }, (_, i) => (this.flip() ? i : i - length)).filter(() => this.flip());
    return this.flip() ? all : all.reverse();
  }

  /** Small extents, or one that is larger than the blocks of kernels. */
  sizes(rank: number, long = 300): number[] {
    const shape = Array.from({ length: rank }, () => this.random.pick([1, 2, 3, 5]));
    return rank > 0 && this.int(6) === 0 ? shape.with(this.int(rank), long + this.int(5)) : shape;
  }

  /** Shapes that broadcast with each other. */
  shapes(count: number): number[][] {
    const whole = this.shape();
    const part = () => whole.slice(this.int(3) === 0 ? this.int(whole.length + 1) : 0);
    return Array.from({ length: count }, () => part().map((extent) => (this.int(4) === 0 ? 1 : extent)));
  }

  /** Eighths, of which some are equal, or any numbers; positive ones from 1/8 on. */
  numbers(
    shape: Shape,
    { positive = false, special = this.special, requiresGrad = true, low = -1.5, high = 1.5 } = {},
  ): CallInput {
    const ties = this.int(3) === 0;
    const values = Array.from({ length: sizeOf(shape) }, () => {
      if (special && this.int(4) === 0) return positive ? 0 : this.random.pick(SPECIAL);
      const number = positive ? 0.125 + 2 * this.random.uniform() : low + (high - low) * this.random.uniform();
      return ties ? Math.round(number * 8) / 8 || (positive ? 0.125 : 0) : number;
    });
    return { values, shape, dtype: this.dtype, requiresGrad };
  }

  whole(shape: Shape, below: number, dtype: DType = "i32"): CallInput {
    return { values: Array.from({ length: sizeOf(shape) }, () => this.int(below)), shape, dtype };
  }
}

export interface Drawn {
  readonly inputs: readonly CallInput[];
  readonly code: string;
  readonly run: TorchCall["run"];
  /** PyTorch's gradients by infinities and NaN differ between its vectors and scalars, or are NaN: they are compared of finite numbers. */
  readonly finite?: boolean;
  /** Default true: PyTorch has its second gradients. */
  readonly second?: TorchCall["second"];
}

export type Row = (draw: Draw) => Drawn;

/** The same in Python. */
export const bool = (value: boolean) => (value ? "True" : "False");
export const list = (values: Shape) => `[${values}]`;

/** A call of a row, by a seed. */
export function drawnCall(i: number, name: string, row: Row, seed: number, dtypes?: readonly FloatDType[]): TorchCall {
  const draw = new Draw(new Random(seed), dtypes);
  const { finite, inputs, second: given, ...drawn } = row(draw);
  const isDifferentiated = !(finite && draw.special);
  const shown = inputs.map((given) => `${given.dtype} [${given.shape}]`).join(", ");
  const tolerance = TOLERANCES[draw.dtype];
  // The second gradients of 16-bit floats are rounded too often in PyTorch to be compared by their values.
  const second = given ?? (draw.dtype === "f64" || draw.dtype === "f32" ? true : "presence");
  return {
    name: `${i}: ${name} of ${shown}`,
    tolerance: { absolute: tolerance, relative: tolerance },
    second: isDifferentiated && second,
    ...drawn,
    inputs: isDifferentiated ? inputs : inputs.map((given) => ({ ...given, requiresGrad: false })),
  };
}

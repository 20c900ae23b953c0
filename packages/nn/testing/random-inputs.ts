/** Inputs of random configurations that PyTorch judges. */
import type { DType, Shape, Tensor } from "@opt/core";
import { type CallInput, Random } from "@opt/testkit";
import type { Module } from "../src/module/module";

export class RandomInputs {
  readonly random: Random;

  constructor(seed: number) {
    this.random = new Random(seed);
  }

  between(low: number, high: number): number {
    return low + this.random.below(high - low + 1);
  }

  flip(): boolean {
    return this.random.below(2) === 0;
  }

  /** Numbers in -2 .. 2, or whole ones below `classes`. */
  numbers(shape: Shape, dtype: DType, { requiresGrad = true, low = -2, high = 2 } = {}): CallInput {
    const size = shape.reduce((a, b) => a * b, 1);
    const values = Float64Array.from({ length: size }, () => low + (high - low) * this.random.uniform());
    return { values: dtype === "f32" ? Float64Array.from(values, Math.fround) : values, shape, dtype, requiresGrad };
  }

  whole(shape: Shape, classes: number, ignored = -100, share = 0): CallInput {
    const size = shape.reduce((a, b) => a * b, 1);
    const values = Array.from({ length: size }, () =>
      this.random.uniform() < share ? ignored : this.random.below(classes),
    );
    return { values, shape, dtype: "i32" };
  }
}

/** The module with these tensors as its own. */
export function holding<M extends Module>(module: M, tensors: Readonly<Record<string, Tensor | undefined>>): M {
  for (const [name, tensor] of Object.entries(tensors)) {
    if (tensor !== undefined) Object.assign(module, { [name]: tensor });
  }
  return module;
}

/** The same in Python. */
export const python = (value: unknown): string =>
  value === null ? "None" : value === true ? "True" : value === false ? "False" : JSON.stringify(value);

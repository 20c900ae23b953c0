import type { Tensor } from "@opt/core";
import { Module } from "./module";

/** A module from one tensor to one tensor. */
export type Layer = Module & { forward(x: Tensor): Tensor };

/**
 * Layers one after the other, named by their position: "0.weight", "0.bias", "2.weight", ...
 *
 * @example
 * const model = new Sequential(new Linear(784, 256), new ReLU(), new Linear(256, 10));
 */
export class Sequential extends Module {
  readonly #layers: readonly Layer[];

  constructor(...layers: Layer[]) {
    super();
    this.#layers = layers;
  }

  override *namedChildren(): Generator<[string, Module]> {
    for (const [i, layer] of this.#layers.entries()) yield [String(i), layer];
  }

  forward(x: Tensor): Tensor {
    return this.#layers.reduce((input, layer) => layer.forward(input), x);
  }
}

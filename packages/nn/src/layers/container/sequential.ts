import { check, checkTensor, show, type Tensor } from "@opt/core";
import { isModule, Module } from "../../module/module";

/** A module from one tensor to one tensor. */
export type Layer = Module & { forward(x: Tensor): Tensor };

/**
 * Layers one after the other, named by their position: "0.weight", "0.bias", "2.weight", ...
 * It is iterable, so that `...body` puts its layers into another one.
 *
 * @throws OptError BAD_ARGUMENT for what is no module
 * @example
 * const model = new Sequential(new Linear(784, 256), new ReLU(), new Linear(256, 10));
 * const tuned = new Sequential(...model.slice(0, -1), new Linear(256, 2)); // shares the first two layers
 * const head = tuned.at(-1);
 */
export class Sequential extends Module implements Iterable<Layer> {
  readonly #layers: readonly Layer[];

  constructor(...layers: Layer[]) {
    super();
    for (const [i, layer] of layers.entries()) {
      check(
        isModule(layer),
        "BAD_ARGUMENT",
        "Sequential",
        () => `layer ${i} must be a module, got ${show(layer)}.`,
        "Pass layers one by one: new Sequential(a, b).",
      );
    }
    this.#layers = layers;
  }

  get length(): number {
    return this.#layers.length;
  }

  /** The layer at a position, which counts from the end if it is negative. */
  at(index: number): Layer | undefined {
    return this.#layers.at(index);
  }

  /** The layers from `start` to before `end`, counted as an array's slice: the same layers, named from 0 on. */
  slice(start?: number, end?: number): Sequential {
    return new Sequential(...this.#layers.slice(start, end));
  }

  [Symbol.iterator](): IterableIterator<Layer> {
    return this.#layers.values();
  }

  override namedChildren(): [string, Module][] {
    return this.#layers.map((layer, i) => [String(i), layer]);
  }

  forward(x: Tensor, ...more: readonly never[]): Tensor {
    checkTensor("Sequential", x);
    check(
      more.length === 0,
      "BAD_ARGUMENT",
      "Sequential",
      () => `takes one input, got ${more.length + 1}.`,
      "Write a Module whose forward hands them on.",
    );
    const [first, ...others] = this.#layers;
    if (first === undefined) return x.reshape(x.shape);
    return others.reduce((input, layer) => layer.forward(input), first.forward(x));
  }
}

/** Losses as modules: a class is made from a loss function. */
import { Tensor } from "@opt/core";
import { Module } from "../module/module";

/** A loss that keeps its options. Tensors among them are buffers, which follow `.to()`, under PyTorch's names: weight, pos_weight. */
export interface LossModule<Inputs extends readonly unknown[]> extends Module {
  forward(...inputs: Inputs): Tensor;
}

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/**
 * The class of a loss function: it takes the function's options when it is made, and the other arguments in `forward`.
 *
 * @param settled checks options, as the function does
 */
export function lossClass<Inputs extends readonly unknown[], Options extends object>(
  loss: (...given: [...Inputs, options?: Options]) => Tensor,
  settled: (where: string, options: Options) => unknown,
): new (
  options?: Options,
) => LossModule<Inputs> {
  return class extends Module {
    readonly options: Readonly<Record<string, unknown>>;
    readonly #tensors: readonly string[];

    constructor(options: Options = {} as Options) {
      super();
      settled(new.target.name, options);
      const given = Object.entries(options).filter(([, value]) => value !== undefined);
      const isTensor = ([, value]: [string, unknown]) => value instanceof Tensor;
      this.options = Object.fromEntries(given.filter((entry) => !isTensor(entry)));
      const tensors = given.filter(isTensor);
      this.#tensors = tensors.map(([name]) => name);
      for (const [name, value] of tensors) this.#own[snake(name)] = value;
    }

    get #own(): Record<string, unknown> {
      return this as unknown as Record<string, unknown>;
    }

    forward(...inputs: Inputs): Tensor {
      const tensors = this.#tensors.map((name) => [name, this.#own[snake(name)] ?? undefined]);
      const options = { ...this.options, ...Object.fromEntries(tensors) } as Options;
      return loss(...inputs, options);
    }

    override describe(): string {
      return Object.entries(this.options)
        .map(([name, value]) => `${name}=${value}`)
        .join(", ");
    }
  };
}

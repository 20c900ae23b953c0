/** Distributions of numbers, whose parameters are tensors of one shape: that of the batch. */
import { checkOptions } from "../errors/options";
import type { Tensor } from "../tensor/tensor";
import type { Shape } from "../values/shape";
import type { Constraint } from "./constraints";
import { broadcastAll, DISTRIBUTION_OPTIONS, Distribution, type DistributionOptions, expandedTo } from "./distribution";

type Given = readonly [
  value: Tensor | number,
  set: Constraint | ((others: Readonly<Record<string, Tensor>>) => Constraint),
];

export abstract class Parametric extends Distribution {
  /** In the order of the constructor, which become properties. */
  readonly #parameters: readonly Tensor[];

  /** @param given parameters by name, with the sets that they must be in */
  protected constructor(name: string, given: Readonly<Record<string, Given>>, options: DistributionOptions) {
    checkOptions(name, options, DISTRIBUTION_OPTIONS);
    const tensors = broadcastAll(name, ...Object.values(given).map(([value]) => value));
    super(name, tensors[0]!.shape, [], options);
    this.#parameters = tensors;
    const byName = Object.fromEntries(Object.keys(given).map((each, i) => [each, tensors[i]!]));
    Object.assign(this, byName);
    for (const [each, [, set]] of Object.entries(given)) {
      this.checkParameter(each, byName[each]!, typeof set === "function" ? set(byName) : set);
    }
  }

  protected expanded<Expanded>(batchShape: Shape, make: (...parameters: Tensor[]) => Expanded): Expanded {
    return make(...this.#parameters.map((each) => expandedTo(each, batchShape)));
  }
}

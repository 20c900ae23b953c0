/** How near vectors are, as layers of two inputs. */
import { check, checkOptions, type OptionKind, show, type Tensor } from "@opt/core";
import { Module } from "../module/module";
import {
  type CosineSimilarityOptions,
  cosineSimilarity,
  type PairwiseDistanceOptions,
  pairwiseDistance,
} from "../similarity/similarity";

abstract class Similarity<Options extends object> extends Module {
  readonly options: Options;

  constructor(options: Options, kinds: Readonly<Record<string, OptionKind>>) {
    super();
    const where = new.target.name;
    checkOptions(where, options, kinds);
    for (const [name, value] of Object.entries(options)) {
      const isNumber = typeof value !== "number" || !Number.isNaN(value);
      check(isNumber, "BAD_ARGUMENT", where, () => `${name} must be a number, got ${show(value)}.`, "Leave it out.");
    }
    this.options = { ...options };
  }

  override describe(): string {
    return Object.entries(this.options)
      .map(([name, value]) => `${name}=${value}`)
      .join(", ");
  }
}

/**
 * The cosine of the angles between vectors of two tensors: `cosineSimilarity` as a layer.
 *
 * @throws OptError BAD_ARGUMENT; forward: BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const cosines = new CosineSimilarity({ axis: -1 }).forward(rand([4, 3]), rand([4, 3])); // [4]
 */
export class CosineSimilarity extends Similarity<CosineSimilarityOptions> {
  constructor(options: CosineSimilarityOptions = {}) {
    super(options, { axis: "number", eps: "number" });
  }

  forward(a: Tensor, b: Tensor): Tensor {
    return cosineSimilarity(a, b, this.options);
  }
}

/**
 * The distances of vectors of two tensors: `pairwiseDistance` as a layer.
 *
 * @throws OptError BAD_ARGUMENT; forward: BAD_SHAPE, DEVICE_MISMATCH
 * @example
 * const distances = new PairwiseDistance({ p: 1 }).forward(rand([4, 3]), rand([4, 3])); // [4]
 */
export class PairwiseDistance extends Similarity<PairwiseDistanceOptions> {
  constructor(options: PairwiseDistanceOptions = {}) {
    super(options, { p: "number", eps: "number", keepDim: "boolean" });
  }

  forward(a: Tensor, b: Tensor): Tensor {
    return pairwiseDistance(a, b, this.options);
  }
}

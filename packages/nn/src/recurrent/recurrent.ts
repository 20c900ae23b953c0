/** Layers that go along sequences: what RNN, LSTM and GRU share. */
import {
  check,
  checkOptions,
  checkTensor,
  concat,
  full,
  type OptionKind,
  show,
  stack,
  Tensor,
  tidy,
  where as whereOf,
} from "@opt/core";
import { uniform } from "../initializers/initializers";
import { checkShare, Dropout } from "../layers/dropout/dropout";
import { checkExtents } from "../layers/extent";
import { drawnBy, LAYER_OPTIONS, type LayerOptions, weightOf } from "../layers/layer-options";
import { holdParameters } from "../module/held";
import { Module } from "../module/module";
import type { Cell } from "./cell";
import { type RecurrentCall, seenPlaces } from "./lengths";

export interface RecurrentOptions extends LayerOptions {
  /** Layers on top of each other. Default 1. */
  readonly numLayers?: number;
  readonly bias?: boolean;
  /** Inputs are [batch, length, width] instead of [length, batch, width]. Default false, as PyTorch's. */
  readonly batchFirst?: boolean;
  /** The share of each layer's results, but for the last one's, that is dropped in training. Throws for one layer, where PyTorch warns. Default 0. */
  readonly dropout?: number;
  /** A second layer goes from the end to the beginning. Default false. */
  readonly bidirectional?: boolean;
}

const OPTIONS = {
  numLayers: "number",
  bias: "boolean",
  batchFirst: "boolean",
  dropout: "number",
  bidirectional: "boolean",
  ...LAYER_OPTIONS,
} as const;

/** One direction of a layer: all results, and each of the cell's states that was last. */
export interface DirectionResult {
  readonly results: Tensor;
  readonly end: readonly Tensor[];
}

/** All of it at once from the products of inputs [length, batch, gates * hidden], on devices that can; `byCell` on others. */
export type WholeSequence = (
  products: Tensor,
  own: Weights,
  begin: readonly Tensor[],
  reverse: boolean,
  byCell: () => DirectionResult,
) => DirectionResult;

interface Weights {
  readonly recurrent: Tensor;
  /** Of the inputs, and of the last result. */
  readonly biases: readonly Tensor[];
}

/** Weights under PyTorch's names: weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_hr_l0 if it projects, weight_ih_l0_reverse, ... */
export abstract class Recurrent extends Module {
  readonly inputSize: number;
  readonly hiddenSize: number;
  readonly numLayers: number;
  readonly batchFirst: boolean;
  readonly dropout: number;
  readonly bidirectional: boolean;
  /** Width of the results, which an LSTM may project; 0 if it doesn't. */
  readonly projSize: number;
  readonly #drawn: Pick<LayerOptions, "generator">;

  protected constructor(
    gates: number,
    inputSize: number,
    hiddenSize: number,
    options: RecurrentOptions & { readonly projSize?: number },
    more: Readonly<Record<string, OptionKind>> = {},
  ) {
    super();
    const where = new.target.name;
    checkOptions(where, options, { ...OPTIONS, ...more });
    const {
      projSize = 0,
      numLayers = 1,
      bias = true,
      batchFirst = false,
      dropout = 0,
      bidirectional = false,
      ...layer
    } = options;
    checkExtents(where, { inputSize, hiddenSize, numLayers });
    check(numLayers < 2 ** 31, "BAD_ARGUMENT", where, () => `numLayers must be below 2^31, got ${numLayers}.`);
    checkShare(where, "dropout", dropout);
    check(
      dropout === 0 || numLayers > 1,
      "BAD_ARGUMENT",
      where,
      () => `dropout comes between layers, got ${dropout} for one layer.`,
      "Pass numLayers: 2, or add a Dropout behind.",
    );
    check(
      projSize === 0 || (Number.isInteger(projSize) && projSize > 0 && projSize < hiddenSize),
      "BAD_ARGUMENT",
      where,
      () => `projSize must be a whole number from 0 to below hiddenSize = ${hiddenSize}, got ${show(projSize)}.`,
      "Leave it out for no projection.",
    );
    this.inputSize = inputSize;
    this.projSize = projSize;
    this.hiddenSize = hiddenSize;
    this.numLayers = numLayers;
    this.batchFirst = batchFirst;
    this.dropout = dropout;
    this.bidirectional = bidirectional;
    this.#drawn = drawnBy(layer);
    const bound = 1 / Math.sqrt(hiddenSize);
    const drawn = (shape: readonly number[]) => uniform(weightOf(shape, layer), -bound, bound, drawnBy(layer));
    const own = this as unknown as Record<string, Tensor>;
    for (const [at, suffix] of this.#suffixes()) {
      const width = at === 0 ? inputSize : this.#resultSize * (bidirectional ? 2 : 1);
      own[`weight_ih_${suffix}`] = drawn([gates * hiddenSize, width]);
      own[`weight_hh_${suffix}`] = drawn([gates * hiddenSize, this.#resultSize]);
      if (bias) for (const from of ["ih", "hh"]) own[`bias_${from}_${suffix}`] = drawn([gates * hiddenSize]);
      if (projSize > 0) own[`weight_hr_${suffix}`] = drawn([projSize, hiddenSize]);
    }
    const weights = this.#suffixes().flatMap(([, suffix]) => {
      const projection = projSize > 0 ? [`weight_hr_${suffix}`] : [];
      return [`weight_ih_${suffix}`, `weight_hh_${suffix}`, ...projection];
    });
    holdParameters(this, weights);
  }

  get #resultSize(): number {
    return this.projSize || this.hiddenSize;
  }

  /** The layer of each set of weights, and how its names end. */
  #suffixes(): [number, string][] {
    const ends = this.bidirectional ? ["", "_reverse"] : [""];
    return Array.from({ length: this.numLayers }, (_, i) =>
      ends.map((end): [number, string] => [i, `l${i}${end}`]),
    ).flat();
  }

  /**
   * The results of the last layer, and of each of the cell's states the last of every layer and direction.
   * `count` states of shape [layers * directions, batch, hidden] begin as zeros where they are not given. The first is as wide as results.
   */
  protected along(
    x: Tensor,
    given: readonly Tensor[] | undefined,
    count: number,
    call: RecurrentCall,
    cell: Cell,
    whole: WholeSequence = (_products, _own, _begin, _reverse, byCell) => byCell(),
  ): [Tensor, Tensor[]] {
    const where = this.constructor.name;
    checkTensor(where, x);
    check(
      (x.shape.length === 2 || x.shape.length === 3) && x.shape.at(-1) === this.inputSize && this.#lengthOf(x) > 0,
      "BAD_SHAPE",
      where,
      () => `the input must be [length, batch, ${this.inputSize}], with or without the batch, got [${x.shape}].`,
      "batchFirst: true takes [batch, length, width].",
    );
    return tidy((): [Tensor, Tensor[]] => {
      const single = x.shape.length === 2;
      let sequence = single ? x.unsqueeze(1) : this.batchFirst ? x.transpose(0, 1) : x;
      const batch = sequence.shape[1]!;
      const seen = seenPlaces(where, call, sequence);
      if (seen !== undefined) sequence = whereOf(seen, sequence, 0);
      const names = this.#suffixes();
      const widthOf = (s: number) => (s === 0 ? this.#resultSize : this.hiddenSize);
      const states = given?.map((state, s) => this.#state(state, single, names.length, batch, widthOf(s)));
      const zeros = Array.from({ length: count }, (_, s) =>
        full([batch, widthOf(s)], 0, { dtype: x.dtype, device: x.device }),
      );
      const last: (readonly Tensor[])[] = [];
      for (let layer = 0; layer < this.numLayers; layer++) {
        if (layer > 0 && this.training && this.dropout !== 0)
          sequence = new Dropout(this.dropout, this.#drawn).forward(sequence);
        const directions = names.flatMap(([at, suffix], i) => {
          if (at !== layer) return [];
          const begin = zeros.map((zero, s) => states?.[s]?.slice(i, i + 1).squeeze(0) ?? zero);
          const { results, end } = this.#run(sequence, suffix, begin, seen, cell, whole);
          last.push(end);
          return [results];
        });
        sequence = directions.length === 1 ? directions[0]! : concat(directions, -1);
      }
      const output = single ? sequence.squeeze(1) : this.batchFirst ? sequence.transpose(0, 1) : sequence;
      const ends = Array.from({ length: count }, (_, s) => stack(last.map((state) => state[s]!)));
      return [output, single ? ends.map((end) => end.squeeze(1)) : ends];
    });
  }

  #lengthOf({ shape }: Tensor): number {
    return shape[shape.length === 3 && this.batchFirst ? 1 : 0]!;
  }

  #state(state: Tensor, single: boolean, rows: number, batch: number, width: number): Tensor {
    const where = this.constructor.name;
    checkTensor(where, state, "the state");
    const shape = single ? [rows, width] : [rows, batch, width];
    check(
      String(state.shape) === String(shape),
      "BAD_SHAPE",
      where,
      () => `states must be [${shape}], got [${state.shape}].`,
      "[layers * directions, batch, hidden], whatever batchFirst says.",
    );
    return single ? state.unsqueeze(1) : state;
  }

  /** One direction of one layer. All inputs' gates come from one matrix product. */
  #run(
    sequence: Tensor,
    suffix: string,
    begin: readonly Tensor[],
    seen: Tensor | undefined,
    cell: Cell,
    whole: WholeSequence,
  ): DirectionResult {
    const own = this as unknown as Record<string, Tensor | null | undefined>;
    const [length, batch, width] = sequence.shape as [number, number, number];
    const plus = (product: Tensor, bias: Tensor | null | undefined) => (bias ? product.add(bias) : product);
    const rows = sequence.reshape([length * batch, width]);
    const products = rows.matmul(own[`weight_ih_${suffix}`]!, { transposeB: true });
    const [recurrent, ...biases] = ["weight_hh", "bias_ih", "bias_hh"].map((name) => own[`${name}_${suffix}`]);
    const places = products.reshape([length, batch, products.shape[1]!]);
    const weights = { recurrent: recurrent!, biases: biases.filter((bias) => bias instanceof Tensor) };
    const reverse = suffix.endsWith("_reverse");
    const byCell = (): DirectionResult => {
      const inputs = plus(products, own[`bias_ih_${suffix}`]);
      const recur = (hidden: Tensor) =>
        plus(hidden.matmul(own[`weight_hh_${suffix}`]!, { transposeB: true }), own[`bias_hh_${suffix}`]);
      const projection = this.projSize > 0 ? own[`weight_hr_${suffix}`]! : undefined;
      const projected = ([result, ...others]: readonly Tensor[]) =>
        projection === undefined ? [result!, ...others] : [result!.matmul(projection, { transposeB: true }), ...others];
      const results = new Array<Tensor>(length);
      let state = begin;
      for (let step = 0; step < length; step++) {
        const t = reverse ? length - 1 - step : step;
        const next = projected(cell(inputs.slice(t * batch, (t + 1) * batch), state, recur));
        const isSeen = seen?.slice(t, t + 1).squeeze(0);
        state = isSeen === undefined ? next : next.map((value, i) => whereOf(isSeen, value, state[i]!));
        results[t] = state[0]!;
      }
      const all = stack(results);
      return { results: seen === undefined ? all : whereOf(seen, all, 0), end: state };
    };
    return seen === undefined && this.projSize === 0 ? whole(places, weights, begin, reverse, byCell) : byCell();
  }

  override describe(): string {
    const { inputSize, hiddenSize, projSize, numLayers, bidirectional } = this;
    const projected = projSize > 0 ? `, projSize=${projSize}` : "";
    return `${inputSize}, ${hiddenSize}${projected}, numLayers=${numLayers}, bidirectional=${bidirectional}`;
  }
}

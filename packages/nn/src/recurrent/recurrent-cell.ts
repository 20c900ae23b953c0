/** One step of a recurrent layer, for loops of one's own. */
import { check, checkOptions, checkTensor, full, type OptionKind, type Tensor, tidy } from "@opt/core";
import { uniform } from "../initializers/initializers";
import { checkExtents } from "../layers/extent";
import { drawnBy, LAYER_OPTIONS, type LayerOptions, weightOf } from "../layers/layer-options";
import { holdParameters } from "../module/held";
import { Module } from "../module/module";
import type { Cell } from "./cell";

export interface RecurrentCellOptions extends LayerOptions {
  readonly bias?: boolean;
}

/** Weights under PyTorch's names. */
export abstract class RecurrentCell extends Module {
  weight_ih: Tensor;
  weight_hh: Tensor;
  bias_ih: Tensor | null;
  bias_hh: Tensor | null;
  readonly inputSize: number;
  readonly hiddenSize: number;

  protected constructor(
    gates: number,
    inputSize: number,
    hiddenSize: number,
    options: RecurrentCellOptions,
    more: Readonly<Record<string, OptionKind>> = {},
  ) {
    super();
    const where = new.target.name;
    checkOptions(where, options, { bias: "boolean", ...LAYER_OPTIONS, ...more });
    checkExtents(where, { inputSize, hiddenSize });
    const { bias = true } = options;
    const bound = 1 / Math.sqrt(hiddenSize);
    const drawn = (shape: readonly number[]) => uniform(weightOf(shape, options), -bound, bound, drawnBy(options));
    this.weight_ih = drawn([gates * hiddenSize, inputSize]);
    this.weight_hh = drawn([gates * hiddenSize, hiddenSize]);
    this.bias_ih = bias ? drawn([gates * hiddenSize]) : null;
    this.bias_hh = bias ? drawn([gates * hiddenSize]) : null;
    this.inputSize = inputSize;
    this.hiddenSize = hiddenSize;
    holdParameters(this, ["weight_ih", "weight_hh"]);
  }

  /** The cell's `count` states after x; they are zeros before, where they are not given. */
  protected step(x: Tensor, given: readonly Tensor[] | undefined, count: number, cell: Cell): Tensor[] {
    const where = this.constructor.name;
    const { inputSize, hiddenSize } = this;
    const fits = (tensor: Tensor, width: number) =>
      tensor.shape.length === x.shape.length && tensor.shape.at(-1) === width && tensor.shape.at(-2) === x.shape.at(-2);
    checkTensor(where, x);
    const isInput = (x.shape.length === 1 || x.shape.length === 2) && x.shape.at(-1) === inputSize;
    check(
      isInput,
      "BAD_SHAPE",
      where,
      () => `the input must be [batch, ${inputSize}], with or without the batch, got [${x.shape}].`,
      "RNN, LSTM and GRU take whole sequences.",
    );
    for (const state of given ?? []) {
      checkTensor(where, state, "the state");
      check(
        fits(state, hiddenSize),
        "BAD_SHAPE",
        where,
        () => `states must be [${[...x.shape.slice(0, -1), hiddenSize]}], got [${state.shape}].`,
        "As the input, with hiddenSize.",
      );
    }
    return tidy(() => {
      const rows = (tensor: Tensor) => (x.shape.length === 1 ? tensor.unsqueeze(0) : tensor);
      const product = (values: Tensor, weight: Tensor, bias: Tensor | null) => {
        const result = values.matmul(weight, { transposeB: true });
        return bias === null ? result : result.add(bias);
      };
      const begin = full([rows(x).shape[0]!, hiddenSize], 0, { dtype: x.dtype, device: x.device });
      const state = given?.map(rows) ?? Array.from({ length: count }, () => begin);
      const inputs = product(rows(x), this.weight_ih, this.bias_ih);
      const next = cell(inputs, state, (hidden) => product(hidden, this.weight_hh, this.bias_hh));
      return next.map((value) => (x.shape.length === 1 ? value.squeeze(0) : value));
    });
  }

  override describe(): string {
    return `${this.inputSize}, ${this.hiddenSize}, bias=${this.bias_ih !== null}`;
  }
}

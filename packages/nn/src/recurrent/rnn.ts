import { check, show, type Tensor } from "@opt/core";
import { type RnnNonlinearity, rnnCell } from "./cell";
import type { RecurrentCall } from "./lengths";
import { Recurrent, type RecurrentOptions } from "./recurrent";

export interface RnnOptions extends RecurrentOptions {
  /** Default "tanh". */
  readonly nonlinearity?: RnnNonlinearity;
}

/** @throws OptError BAD_ARGUMENT */
export function checkNonlinearity(where: string, value: unknown): void {
  const isKnown = value === "tanh" || value === "relu";
  check(isKnown, "BAD_ARGUMENT", where, () => `nonlinearity must be "tanh" or "relu", got ${show(value)}.`);
}

/**
 * Recurrent layer of Elman (1990): h' = tanh(W x + b + V h + d), or with relu. x [length, batch, inputSize]. Parameters have PyTorch's names
 * and begin as U[-k, k], k = 1 / sqrt(hiddenSize).
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1 or another nonlinearity; forward: BAD_SHAPE, BAD_ARGUMENT, BAD_DTYPE
 * @example
 * const [output, hidden] = new RNN(4, 8, { nonlinearity: "relu" }).forward(rand([5, 2, 4])); // [5, 2, 8] and [1, 2, 8]
 */
export class RNN extends Recurrent {
  readonly nonlinearity: RnnNonlinearity;

  constructor(inputSize: number, hiddenSize: number, options: RnnOptions = {}) {
    super(1, inputSize, hiddenSize, options, { nonlinearity: "any" });
    const { nonlinearity = "tanh" } = options;
    checkNonlinearity("RNN", nonlinearity);
    this.nonlinearity = nonlinearity;
  }

  /**
   * Runs along a sequence [length, batch, inputSize]. With `batchFirst` it is [batch, length, inputSize], and without a batch
   * [length, inputSize]. `hidden` is the first state, by default zeros. `{ lengths }` says where each sequence ends.
   *
   * @returns Always a pair `[output, hidden]`, as `GRU` returns it.
   */
  forward(x: Tensor, hidden?: Tensor, call: RecurrentCall = {}): [output: Tensor, hidden: Tensor] {
    const given = hidden === undefined ? undefined : [hidden];
    const [output, last] = this.along(x, given, 1, call, rnnCell(this.nonlinearity));
    return [output, last[0]!];
  }
}

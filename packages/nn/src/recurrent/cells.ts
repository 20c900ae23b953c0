import { check, show, type Tensor } from "@opt/core";
import { gruCell, lstmCell, type RnnNonlinearity, rnnCell } from "./cell";
import { RecurrentCell, type RecurrentCellOptions } from "./recurrent-cell";
import { checkNonlinearity, type RnnOptions } from "./rnn";

export interface RnnCellOptions extends RecurrentCellOptions, Pick<RnnOptions, "nonlinearity"> {}

/**
 * One step of an `RNN`: h' = tanh(W x + b + V h + d), or with relu. x [batch, inputSize], h [batch, hiddenSize] or zeros, h' as h.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1 or another nonlinearity; forward: BAD_SHAPE
 * @example
 * const hidden = new RNNCell(4, 8).forward(rand([2, 4])); // [2, 8]
 */
export class RNNCell extends RecurrentCell {
  readonly nonlinearity: RnnNonlinearity;

  constructor(inputSize: number, hiddenSize: number, options: RnnCellOptions = {}) {
    super(1, inputSize, hiddenSize, options, { nonlinearity: "any" });
    const { nonlinearity = "tanh" } = options;
    checkNonlinearity("RNNCell", nonlinearity);
    this.nonlinearity = nonlinearity;
  }

  forward(x: Tensor, hidden?: Tensor): Tensor {
    return this.step(x, hidden === undefined ? undefined : [hidden], 1, rnnCell(this.nonlinearity))[0]!;
  }
}

/**
 * One step of a `GRU`. x [batch, inputSize], h [batch, hiddenSize] or zeros, h' as h.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE
 * @example
 * const cell = new GRUCell(4, 8);
 * const hidden = cell.forward(rand([2, 4]), cell.forward(rand([2, 4]))); // [2, 8], after two steps
 */
export class GRUCell extends RecurrentCell {
  constructor(inputSize: number, hiddenSize: number, options: RecurrentCellOptions = {}) {
    super(3, inputSize, hiddenSize, options);
  }

  forward(x: Tensor, hidden?: Tensor): Tensor {
    return this.step(x, hidden === undefined ? undefined : [hidden], 1, gruCell)[0]!;
  }
}

/**
 * One step of an `LSTM`. x [batch, inputSize], the state [hidden, cell], each [batch, hiddenSize], or zeros; the next state as a pair.
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT
 * @example
 * const [hidden, cell] = new LSTMCell(4, 8).forward(rand([2, 4])); // [2, 8] and [2, 8]
 */
export class LSTMCell extends RecurrentCell {
  constructor(inputSize: number, hiddenSize: number, options: RecurrentCellOptions = {}) {
    super(4, inputSize, hiddenSize, options);
  }

  forward(x: Tensor, state?: readonly [hidden: Tensor, cell: Tensor]): [hidden: Tensor, cell: Tensor] {
    const isPair = state === undefined || (Array.isArray(state) && state.length === 2);
    check(isPair, "BAD_ARGUMENT", "LSTMCell", () => `the state must be [h, c], got ${show(state)}.`, "Pass both.");
    return this.step(x, state, 2, lstmCell) as [Tensor, Tensor];
  }
}

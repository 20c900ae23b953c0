import { check, show, split, type Tensor } from "@opt/core";
import { Recurrent, type RecurrentOptions } from "./recurrent";

/**
 * Long short-term memory (Hochreiter & Schmidhuber 1997): c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c'), the gates
 * i, f, g, o being W x + b + V h + d. x [length, batch, inputSize]. Parameters have PyTorch's names and begin as U[-k, k], k = 1 / sqrt(hiddenSize).
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE
 * @example
 * const [output, [hidden, cell]] = new LSTM(4, 8).forward(rand([5, 2, 4])); // [5, 2, 8], [1, 2, 8] and [1, 2, 8]
 */
export class LSTM extends Recurrent {
  constructor(inputSize: number, hiddenSize: number, options: RecurrentOptions = {}) {
    super(4, inputSize, hiddenSize, options);
  }

  /** The last layer's results, and [h, c] of all layers and directions at the end. `state`: what they begin as, by default zeros. */
  forward(x: Tensor, state?: readonly [hidden: Tensor, cell: Tensor]): [Tensor, [hidden: Tensor, cell: Tensor]] {
    const isPair = state === undefined || (Array.isArray(state) && state.length === 2);
    check(isPair, "BAD_ARGUMENT", "LSTM", () => `the state must be [h, c], got ${show(state)}.`, "Pass both.");
    const [output, last] = this.along(x, state, 2, (inputs, [h, c], recur) => {
      const [i, f, g, o] = split(inputs.add(recur(h!)), this.hiddenSize, 1) as [Tensor, Tensor, Tensor, Tensor];
      const next = f.sigmoid().mul(c!).add(i.sigmoid().mul(g.tanh()));
      return [o.sigmoid().mul(next.tanh()), next];
    });
    return [output, last as [Tensor, Tensor]];
  }
}

import { check, fusedLstm, type LstmResults, needing, show, type Tensor, zeros } from "@opt/core";
import { lstmCell } from "./cell";
import type { RecurrentCall } from "./lengths";
import { type DirectionResult, Recurrent, type RecurrentOptions, type WholeSequence } from "./recurrent";

export interface LstmLayerOptions extends RecurrentOptions {
  /** Projects each h' to this width, below hiddenSize, by weight_hr_l0 (Sak et al. 2014). Default 0: it does not. */
  readonly projSize?: number;
}

/**
 * Long short-term memory (Hochreiter & Schmidhuber 1997): c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c'), the gates
 * i, f, g, o being W x + b + V h + d. x [length, batch, inputSize]. Parameters have PyTorch's names and begin as U[-k, k], k = 1 / sqrt(hiddenSize).
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1 and a projSize that is not below hiddenSize; forward: BAD_SHAPE, BAD_ARGUMENT, BAD_DTYPE
 * @example
 * const [output, [hidden, cell]] = new LSTM(4, 8).forward(rand([5, 2, 4])); // [5, 2, 8], [1, 2, 8] and [1, 2, 8]
 * const [padded] = new LSTM(4, 8).forward(rand([5, 2, 4]), undefined, { lengths: [5, 3] }); // zeros from place 3 of the second
 */
export class LSTM extends Recurrent {
  constructor(inputSize: number, hiddenSize: number, options: LstmLayerOptions = {}) {
    super(4, inputSize, hiddenSize, options, { projSize: "number" });
  }

  /**
   * Runs along a sequence [length, batch, inputSize]. With `batchFirst` it is [batch, length, inputSize], and without a batch
   * [length, inputSize]. `state` is the first [hidden, cell], by default zeros. `{ lengths }` says where each sequence ends.
   *
   * @returns Always a pair `[output, [hidden, cell]]`. The output has the last layer's result at each place, laid out as the input:
   * [length, batch, hiddenSize], with 2 x hiddenSize if bidirectional. The states are the last of all layers and directions, each
   * [layers * directions, batch, hiddenSize], whatever `batchFirst` says. With `projSize` output and hidden are that wide. To pass them on, detach them: `hidden.detach()`.
   */
  forward(
    x: Tensor,
    state?: readonly [hidden: Tensor, cell: Tensor],
    call: RecurrentCall = {},
  ): [output: Tensor, state: [hidden: Tensor, cell: Tensor]] {
    const isPair = state === undefined || (Array.isArray(state) && state.length === 2);
    check(isPair, "BAD_ARGUMENT", "LSTM", () => `the state must be [h, c], got ${show(state)}.`, "Pass both.");
    const [output, last] = this.along(x, state, 2, call, lstmCell, inOneKernel);
    return [output, last as [Tensor, Tensor]];
  }
}

const inOneKernel: WholeSequence = (products, { recurrent, biases }, [h, c], reverse, byCell) => {
  const { dtype, device } = products;
  const none = () => zeros([recurrent.shape[0]!], { dtype, device });
  const bias = biases.length === 2 ? biases[0]!.add(biases[1]!) : (biases[0] ?? none());
  const { results, cell } =
    fusedLstm(products, recurrent, bias, h!, c!, { reverse }) ?? stepByStep(byCell(), recurrent);
  const last = reverse ? 0 : results.shape[0]! - 1;
  return { results, end: [results.slice(last, last + 1).squeeze(0), cell] };
};

/** What the kernel's gradient needs, that of the cells does, too. */
function stepByStep({ results, end }: DirectionResult, weight: Tensor): LstmResults {
  const cell = needing("lstm", end[1]!, [weight, results]);
  return { results: needing("lstm", results, [weight, results]), cell };
}

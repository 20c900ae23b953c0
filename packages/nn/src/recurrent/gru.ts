import type { Tensor } from "@opt/core";
import { gruCell } from "./cell";
import type { RecurrentCall } from "./lengths";
import { Recurrent, type RecurrentOptions } from "./recurrent";

/**
 * Gated recurrent unit (Cho et al. 2014), as PyTorch has it: r and z are sigmoids of W x + b + V h + d, n = tanh(W x + b + r (V h + d)),
 * h' = n + z (h - n). x [length, batch, inputSize]. Parameters have PyTorch's names and begin as U[-k, k], k = 1 / sqrt(hiddenSize).
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE, BAD_ARGUMENT, BAD_DTYPE
 * @example
 * const [output, hidden] = new GRU(4, 8, { batchFirst: true }).forward(rand([2, 5, 4])); // [2, 5, 8] and [1, 2, 8]
 */
export class GRU extends Recurrent {
  constructor(inputSize: number, hiddenSize: number, options: RecurrentOptions = {}) {
    super(3, inputSize, hiddenSize, options);
  }

  /**
   * Runs along a sequence [length, batch, inputSize]. With `batchFirst` it is [batch, length, inputSize], and without a batch
   * [length, inputSize]. `hidden` is the first state, by default zeros. `{ lengths }` says where each sequence ends.
   *
   * @returns Always a pair `[output, hidden]`. The output has the last layer's result at each place, laid out as the input:
   * [length, batch, hiddenSize], with 2 x hiddenSize if bidirectional. The state is the last of all layers and directions,
   * [layers * directions, batch, hiddenSize], whatever `batchFirst` says. To pass it on, detach it: `hidden.detach()`.
   */
  forward(x: Tensor, hidden?: Tensor, call: RecurrentCall = {}): [output: Tensor, hidden: Tensor] {
    const [output, last] = this.along(x, hidden === undefined ? undefined : [hidden], 1, call, gruCell);
    return [output, last[0]!];
  }
}

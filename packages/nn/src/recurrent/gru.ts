import { split, type Tensor } from "@opt/core";
import { Recurrent, type RecurrentOptions } from "./recurrent";

/**
 * Gated recurrent unit (Cho et al. 2014), as PyTorch has it: r and z are sigmoids of W x + b + V h + d, n = tanh(W x + b + r (V h + d)),
 * h' = n + z (h - n). x [length, batch, inputSize]. Parameters have PyTorch's names and begin as U[-k, k], k = 1 / sqrt(hiddenSize).
 *
 * @throws OptError BAD_ARGUMENT for sizes below 1; forward: BAD_SHAPE
 * @example
 * const [output, hidden] = new GRU(4, 8, { batchFirst: true }).forward(rand([2, 5, 4])); // [2, 5, 8] and [1, 2, 8]
 */
export class GRU extends Recurrent {
  constructor(inputSize: number, hiddenSize: number, options: RecurrentOptions = {}) {
    super(3, inputSize, hiddenSize, options);
  }

  /** The last layer's results, and h of all layers and directions at the end. `hidden`: what it begins as, by default zeros. */
  forward(x: Tensor, hidden?: Tensor): [Tensor, Tensor] {
    const [output, last] = this.along(x, hidden === undefined ? undefined : [hidden], 1, (inputs, [h], recur) => {
      const parts = (gates: Tensor) => split(gates, this.hiddenSize, 1) as [Tensor, Tensor, Tensor];
      const [[inR, inZ, inN], [hR, hZ, hN]] = [parts(inputs), parts(recur(h!))];
      const [r, z] = [inR.add(hR).sigmoid(), inZ.add(hZ).sigmoid()];
      const n = inN.add(r.mul(hN)).tanh();
      return [n.add(z.mul(h!.sub(n)))];
    });
    return [output, last[0]!];
  }
}

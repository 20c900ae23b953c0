/** One step of each kind of cell. */
import { split, type Tensor } from "@opt/core";

/**
 * The next states from the last ones [batch, hidden], the first of them being the result. `inputs` are W x + b of all gates
 * [batch, gates * hidden], and `recur` gives V h + d.
 */
export type Cell = (inputs: Tensor, state: readonly Tensor[], recur: (hidden: Tensor) => Tensor) => readonly Tensor[];

/** How an `RNN` bends. */
export type RnnNonlinearity = "tanh" | "relu";

export function rnnCell(nonlinearity: RnnNonlinearity): Cell {
  return (inputs, [h], recur) => {
    const sum = inputs.add(recur(h!));
    return [nonlinearity === "tanh" ? sum.tanh() : sum.relu()];
  };
}

export const lstmCell: Cell = (inputs, [h, c], recur) => {
  const [i, f, g, o] = split(inputs.add(recur(h!)), c!.shape[1]!, 1) as [Tensor, Tensor, Tensor, Tensor];
  const next = f.sigmoid().mul(c!).add(i.sigmoid().mul(g.tanh()));
  return [o.sigmoid().mul(next.tanh()), next];
};

export const gruCell: Cell = (inputs, [h], recur) => {
  const parts = (gates: Tensor) => split(gates, h!.shape[1]!, 1) as [Tensor, Tensor, Tensor];
  const [[inR, inZ, inN], [hR, hZ, hN]] = [parts(inputs), parts(recur(h!))];
  const [r, z] = [inR.add(hR).sigmoid(), inZ.add(hZ).sigmoid()];
  const n = inN.add(r.mul(hN)).tanh();
  return [n.add(z.mul(h!.sub(n)))];
};

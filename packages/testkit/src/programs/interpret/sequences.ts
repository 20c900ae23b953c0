/** Attention, and layers that go along sequences, from their papers. */
import type { Options } from "../program";
import { concat, flip, permute, reshape, slice, transpose, unsqueeze } from "./arranging";
import { add, asNode, type Interpretation, mul, relu, sigmoid, sub, tanh, where } from "./elementwise";
import { linear, matmul } from "./linear";
import { constant, filled, type Node, times } from "./node";
import { eachPlace, mustHold, stretched } from "./places";
import { softmax } from "./reducing";

/** What a query sees and how its scores are scaled. */
interface View {
  readonly scale: number;
  /** Query i sees keys 0 to i, whatever their numbers are. */
  readonly isCausal?: boolean;
  /** 1 where a query sees a key, of bool; else what is added. */
  readonly mask?: Node | undefined;
  readonly isBool?: boolean;
  /** All weights are dropped. */
  readonly isDropped?: boolean;
}

function attention(query: Node, key: Node, value: Node, view: View): Node {
  const { scale, isCausal, mask, isBool, isDropped } = view;
  mustHold(query.shape.at(-1) === key.shape.at(-1), "one width of queries and keys");
  let scores = matmul(mul(query, scale), transpose(key));
  const all = eachPlace(scores.shape.slice(-2), ([i, j]) => Number(!isCausal || j! <= i!));
  let seen = stretched(constant({ shape: scores.shape.slice(-2), data: Float64Array.from(all) }), scores.shape);
  if (mask !== undefined && isBool) seen = times(seen, stretched(mask, scores.shape));
  else if (mask !== undefined) scores = add(scores, mask);
  const weights = mul(softmax(where(seen, scores, -1e30), -1), seen);
  return matmul(isDropped ? mul(weights, 0) : weights, value);
}

/** Of places [places, batch, width], or without a batch. */
const multihead: Interpretation = ([query, memory, ...weights], options) => {
  const { heads, isCausal, dropout, training } = options as Options & { heads: number; dropout?: number };
  const [inWeight, inBias, outWeight, outBias] = weights.map((one) => asNode(one)) as [Node, Node, Node, Node];
  const [from, to] = [asNode(query!), asNode(memory!)];
  const width = from.shape.at(-1)!;
  const batch = from.shape.length === 3 ? from.shape[1]! : 1;
  const projected = (x: Node, part: number): Node => {
    const [begin, end] = [part * width, (part + 1) * width];
    const own = linear(x, slice(inWeight, begin, end, 0), slice(inBias, begin, end, 0));
    return permute(reshape(own, [x.shape[0]!, batch * heads, width / heads]), [1, 0, 2]);
  };
  const seen = attention(projected(from, 0), projected(to, 1), projected(to, 2), {
    scale: 1 / Math.sqrt(width / heads),
    isCausal: !!isCausal,
    isDropped: dropout === 1 && !!training,
  });
  return linear(reshape(permute(seen, [1, 0, 2]), from.shape), outWeight, outBias);
};

/** The next states of a batch, the result first; `h` are the products of the last result. */
type Cell = (x: Node, h: Node, states: readonly Node[]) => readonly Node[];

const gate = (x: Node, i: number, size: number): Node => slice(x, i * size, (i + 1) * size, 1);

const CELLS: Readonly<Record<string, { readonly states: number; readonly cell: Cell }>> = {
  RNN: { states: 1, cell: (x, h) => [tanh(add(x, h))] },
  "RNN relu": { states: 1, cell: (x, h) => [relu(add(x, h))] },
  LSTM: {
    states: 2,
    cell(x, h, [, memory]) {
      const size = memory!.shape[1]!;
      const [i, f, g, o] = [0, 1, 2, 3].map((at) => gate(add(x, h), at, size)) as [Node, Node, Node, Node];
      const next = add(mul(sigmoid(f), memory!), mul(sigmoid(i), tanh(g)));
      return [mul(sigmoid(o), tanh(next)), next];
    },
  },
  GRU: {
    states: 1,
    cell(x, h, [last]) {
      const size = last!.shape[1]!;
      const [r, z] = [0, 1].map((at) => sigmoid(add(gate(x, at, size), gate(h, at, size)))) as [Node, Node];
      const n = tanh(add(gate(x, 2, size), mul(r, gate(h, 2, size))));
      return [add(mul(sub(1, z), n), mul(z, last!))];
    },
  },
};

interface RecurrentFacts {
  readonly numLayers?: number;
  readonly bidirectional?: boolean;
  readonly batchFirst?: boolean;
  readonly bias?: boolean;
  readonly nonlinearity?: string;
  /** 0 or 1. */
  readonly dropout?: number;
  readonly training?: boolean;
  /** The states at the end come behind the results, in one row. */
  readonly lasts?: number;
}

/** Layers on top of each other: what one gives is dropped before the next one, and the input never. */
const recurrent =
  (kind: string): Interpretation =>
  ([input, ...weights], options) => {
    const facts = options as RecurrentFacts;
    const { numLayers = 1, bidirectional, batchFirst, bias = true, nonlinearity, dropout, training, lasts } = facts;
    const { states, cell } = CELLS[nonlinearity === "relu" ? "RNN relu" : kind]!;
    const x = asNode(input!);
    const rank = x.shape.length;
    mustHold(rank === 2 || rank === 3, "[length, batch, width]");
    const swapped = (node: Node) => (rank === 3 && batchFirst ? permute(node, [1, 0, 2]) : node);
    let sequence = rank === 2 ? unsqueeze(x, 1) : swapped(x);
    const left = weights.map((one) => asNode(one));
    const ends: Node[][] = Array.from({ length: states }, () => []);
    for (let layer = 0; layer < numLayers; layer++) {
      if (layer > 0 && training && dropout === 1) sequence = mul(sequence, 0);
      const directions = (bidirectional ? [false, true] : [false]).map((isBackward) => {
        const own = left.splice(0, bias ? 4 : 2);
        const run = along(isBackward ? flip(sequence, 0) : sequence, own, states, cell);
        for (const [i, state] of run.states.entries()) ends[i]!.push(state);
        return isBackward ? flip(run.results, 0) : run.results;
      });
      sequence = concat(directions, 2);
    }
    const output = rank === 2 ? reshape(sequence, [x.shape[0]!, sequence.shape[2]!]) : swapped(sequence);
    if (lasts === undefined) return output;
    const row = (node: Node) => reshape(node, [node.data.length]);
    return concat([row(output), ...ends.flat().map(row)], 0);
  };

/** One direction of a layer: its results, and its states at the end. */
function along(
  sequence: Node,
  [ofInput, ofLast, ...biases]: readonly Node[],
  count: number,
  cell: Cell,
): { readonly results: Node; readonly states: readonly Node[] } {
  const [length, batch, width] = sequence.shape as [number, number, number];
  let states: readonly Node[] = Array.from({ length: count }, () => filled([batch, ofLast!.shape[1]!], 0));
  const results: Node[] = [];
  for (let t = 0; t < length; t++) {
    const x = reshape(slice(sequence, t, t + 1, 0), [batch, width]);
    states = cell(linear(x, ofInput!, biases[0]), linear(states[0]!, ofLast!, biases[1]), states);
    results.push(unsqueeze(states[0]!, 0));
  }
  return { results: concat(results, 0), states };
}

export const SEQUENCES: Readonly<Record<string, Interpretation>> = {
  attention: (operands, { isCausal }) => {
    const [query, key, value] = operands.map(asNode) as [Node, Node, Node];
    return attention(query, key, value, { scale: 0.5, isCausal: !!isCausal });
  },
  scaledDotProductAttention: (operands, { isCausal, isBool }) => {
    const [query, key, value, mask] = operands.map(asNode) as [Node, Node, Node, Node | undefined];
    const scale = 1 / Math.sqrt(query.shape.at(-1)!);
    return attention(query, key, value, { scale, isCausal: !!isCausal, mask, isBool: !!isBool });
  },
  CrossAttention: multihead,
  RNN: recurrent("RNN"),
  LSTM: recurrent("LSTM"),
  GRU: recurrent("GRU"),
};

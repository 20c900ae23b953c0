/** Sequences through an LSTM in one kernel, on devices that have it. */

import type { SequenceSizes } from "../../backend/spec";
import { checkOptions } from "../../errors/options";
import { carrying } from "../../js/carried";
import { lstmGrad as lstmGradOnJs, lstm as lstmOnJs } from "../../js/lstm";
import { isTaping, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { type ComputeDType, computeDType } from "../../values/dtype";
import { sameShape } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { elementwise } from "../elementwise/elementwise";
import type { ElementwiseName } from "../elementwise/elementwise-table";
import { fill } from "../map";
import { matmul } from "../matmul";
import { sum } from "../reduce/reduce";
import { concat, copyBox, reshape, slice } from "../shape/shape";

/** The results of all places [length, batch, width], and the cell that was last [batch, width]. */
export interface LstmResults {
  readonly results: Tensor;
  readonly cell: Tensor;
}

export interface LstmOptions {
  /** The sequence is gone through from its end. Default false. */
  readonly reverse?: boolean;
}

const NAMES = ["inputs", "weight", "bias", "hidden", "cell"] as const;

/**
 * c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c') along a sequence (Hochreiter & Schmidhuber 1997) in one kernel. The
 * gates i, f, g, o are inputs [length, batch, 4 width] + bias [4 width] + weight [4 width, width] h; hidden and cell [batch, width] are
 * where it begins. null where the device, the dtype or the shapes need more than it.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * const begin = zeros([2, 3]);
 * const found = fusedLstm(rand([5, 2, 12]), rand([12, 3]), rand([12]), begin, begin); // results [5, 2, 3], cell [2, 3], or null
 */
export function fusedLstm(
  inputs: Tensor,
  weight: Tensor,
  bias: Tensor,
  hidden: Tensor,
  cell: Tensor,
  options: LstmOptions = {},
): LstmResults | null {
  const where = "fusedLstm";
  const given = [inputs, weight, bias, hidden, cell];
  for (const [i, tensor] of given.entries()) checkTensor(where, tensor, NAMES[i]);
  checkOptions(where, options, { reverse: "boolean" });
  const { dtype, device } = inputs;
  const { reverse = false } = options;
  const [length, batch] = inputs.shape as [number, number];
  const width = hidden.shape.at(-1) ?? 0;
  const state = [batch, width];
  const shapes = [[length, batch, 4 * width], [4 * width, width], [4 * width], state, state];
  const fits = given.every((x, i) => x.dtype === dtype && x.device === device && sameShape(x.shape, shapes[i]!));
  if (!fits || length === 0 || dtype !== computeDType(dtype) || !device.backend.fuses?.includes("lstm")) return null;
  const sizes = { length, batch, width, reverse };
  const [results, cells, gates, last] = [[length, ...state], [length, ...state], inputs.shape, state].map((shape) =>
    Tensor.empty(shape, dtype, device),
  ) as [Tensor, Tensor, Tensor, Tensor];
  device.launch({
    kind: "lstm",
    kernel: device.kernel(carrying({ kind: "lstm", dtype }, lstmOnJs)),
    inputs: inputs.memorySlice(),
    weight: weight.memorySlice(),
    bias: bias.memorySlice(),
    hidden: hidden.memorySlice(),
    cell: cell.memorySlice(),
    results: results.memorySlice(),
    cells: cells.memorySlice(),
    gates: gates.memorySlice(),
    ...sizes,
  });
  copyRows(cells, last, reverse ? 0 : length - 1, 0, 1);
  const saved = [...given, results, cells, gates];
  const output = record("lstm", results, given, saved, (g, held, needs) => lstmGrad(g, null, held, needs, sizes));
  const end = record("lstm", last, given, saved, (g, held, needs) => lstmGrad(null, g, held, needs, sizes));
  for (const kept of [cells, gates]) kept.dispose(); // the tape holds its own
  return { results: output, cell: end };
}

/** Copies `count` states between tensors of states. */
function copyRows(source: Tensor, target: Tensor, from: number, to: number, count: number): void {
  const state = target.shape.at(-1)! * target.shape.at(-2)!;
  const at = (place: number) => ({ offset: place * state, strides: [1] });
  copyBox(source, target, [count * state], at(from), at(to));
}

/** From the gradient of the results, or of the last cell. */
function lstmGrad(
  gradient: Tensor | null,
  cellGradient: Tensor | null,
  saved: readonly Tensor[],
  needs: readonly boolean[],
  sizes: SequenceSizes,
): (Tensor | null)[] {
  const [inputs, weight, , hidden, cell, results, cells, gates] = saved as Required<Tensors>;
  const { length, batch, width, reverse } = sizes;
  const { device } = inputs;
  const dtype = inputs.dtype as ComputeDType;
  const ofResults = gradient ?? fill(results.shape, 0, dtype, device);
  const ofLast = cellGradient ?? fill(cell.shape, 0, dtype, device);
  if (isTaping()) return recordedGrad(ofResults, ofLast, saved, sizes);
  const [ofInputs, ofHidden, ofCell, before] = [inputs.shape, hidden.shape, cell.shape, results.shape].map((shape) =>
    Tensor.empty(shape, dtype, device),
  ) as [Tensor, Tensor, Tensor, Tensor];
  device.launch({
    kind: "lstmGrad",
    kernel: device.kernel(carrying({ kind: "lstmGrad", dtype }, lstmGradOnJs)),
    weight: weight.memorySlice(),
    cell: cell.memorySlice(),
    cells: cells.memorySlice(),
    gates: gates.memorySlice(),
    gradient: ofResults.memorySlice(),
    cellGradient: ofLast.memorySlice(),
    inputsGradient: ofInputs.memorySlice(),
    firstHiddenGradient: ofHidden.memorySlice(),
    firstCellGradient: ofCell.memorySlice(),
    ...sizes,
  });
  // What each place was given by the one before it.
  copyRows(hidden, before, 0, reverse ? length - 1 : 0, 1);
  copyRows(results, before, reverse ? 1 : 0, reverse ? 0 : 1, length - 1);
  const rows = reshape(ofInputs, [length * batch, 4 * width]);
  return [
    ofInputs,
    needs[1] ? matmul(rows, reshape(before, [length * batch, width]), { transposeA: true }) : null,
    needs[2] ? sum(rows, 0) : null,
    ofHidden,
    ofCell,
  ];
}

type Tensors = [Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor];

/** The gradients by ops that are recorded, through a forward computation by such ops: all that was given has gradients itself. */
function recordedGrad(
  gradient: Tensor,
  cellGradient: Tensor,
  [inputs, weight, bias, hidden, cell]: readonly Tensor[],
  { length, batch, width, reverse }: SequenceSizes,
): Tensor[] {
  const op = (name: ElementwiseName, ...operands: (Tensor | number)[]) => elementwise(name, operands);
  const placeOf = (x: Tensor, t: number) => reshape(slice(x, t, t + 1), [batch, x.shape[2]!]);
  const order = Array.from({ length }, (_, i) => (reverse ? length - 1 - i : i));
  let [h, c] = [hidden!, cell!];
  const steps = order.map((t) => {
    const z = op("add", op("add", placeOf(inputs!, t), bias!), matmul(h, weight!, { transposeB: true }));
    const gate = (name: "sigmoid" | "tanh", n: number) => op(name, slice(z, n * width, (n + 1) * width, 1));
    const [i, f, g, o] = [gate("sigmoid", 0), gate("sigmoid", 1), gate("tanh", 2), gate("sigmoid", 3)];
    const before = { h, c };
    c = op("add", op("mul", f, c), op("mul", i, g));
    const shown = op("tanh", c);
    h = op("mul", o, shown);
    return { t, before, i, f, g, o, shown };
  });
  let [ofHidden, ofCell] = [fill([batch, width], 0, gradient.dtype, gradient.device), cellGradient];
  let ofWeight: Tensor | undefined;
  const ofInputs = new Array<Tensor>(length);
  const product = (...factors: Tensor[]) => factors.reduce((a, b) => op("mul", a, b));
  const rest = (x: Tensor) => op("sub", 1, x);
  for (const { t, before, i, f, g, o, shown } of steps.toReversed()) {
    const d = op("add", ofHidden, placeOf(gradient, t));
    const ofNext = op("add", ofCell, product(d, o, rest(product(shown, shown))));
    const z = concat(
      [
        product(ofNext, g, i, rest(i)),
        product(ofNext, before.c, f, rest(f)),
        product(ofNext, i, rest(product(g, g))),
        product(d, shown, o, rest(o)),
      ],
      1,
    );
    const share = matmul(z, before.h, { transposeA: true });
    ofWeight = ofWeight === undefined ? share : op("add", ofWeight, share);
    [ofHidden, ofCell] = [matmul(z, weight!), product(ofNext, f)];
    ofInputs[t] = reshape(z, [1, batch, 4 * width]);
  }
  const all = concat(ofInputs);
  return [all, ofWeight!, sum(all, [0, 1]), ofHidden, ofCell];
}

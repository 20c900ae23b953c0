/** Sequences through an LSTM: in one kernel on devices that have it, else by ops, with the same words. */

import type { SequenceSizes } from "../../backend/spec";
import { tidy } from "../../device/scope";
import { checkOptions } from "../../errors/options";
import { carried } from "../../js/carried";
import { lstmGrad as lstmGradOnJs, lstm as lstmOnJs } from "../../js/lstm";
import { overSamples } from "../../tensor/batching";
import { isTaping, noGrad, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { type ComputeDType, computeDType } from "../../values/dtype";
import { sameShape } from "../../values/shape";
import { checkTensor } from "../check-tensor";
import { sigmoid } from "../elementwise/activations";
import { elementwise } from "../elementwise/elementwise";
import type { ElementwiseName } from "../elementwise/elementwise-table";
import { tanh } from "../elementwise/rule-ops";
import { fill } from "../map";
import { matmul } from "../matmul";
import { sum } from "../reduce/reduce";
import { copyBox } from "../shape/copy-box";
import { concat, reshape, slice } from "../shape/shape";

const LSTM = /* @__PURE__ */ carried("lstm", lstmOnJs);
const LSTM_GRAD = /* @__PURE__ */ carried("lstmGrad", lstmGradOnJs);

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
 * c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c') along a sequence (Hochreiter & Schmidhuber 1997), in one kernel
 * where the device has it. The gates i, f, g, o are inputs [length, batch, 4 width] + bias [4 width] + weight [4 width, width] h; hidden and cell [batch, width] are
 * where it begins. null where the dtype or the shapes need more than it.
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
  const samples = overSamples(fusedLstm, inputs, weight, bias, hidden, cell, options);
  if (samples) return samples;
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
  if (!fits || length === 0 || dtype !== computeDType(dtype)) return null;
  const sizes = { length, batch, width, reverse };
  const [results, cells, gates, last] = device.backend.fuses?.includes("lstm")
    ? inOneKernel(given, sizes)
    : noGrad(() => tidy(() => byOps(given, sizes)));
  const saved = [...given, results, cells, gates];
  const output = record("lstm", results, given, saved, (g, held, needs) => lstmGrad(g, null, held, needs, sizes));
  const end = record("lstm", last, given, saved, (g, held, needs) => lstmGrad(null, g, held, needs, sizes));
  for (const kept of [cells, gates]) kept.dispose(); // the tape holds its own
  return { results: output, cell: end };
}

/** Results, cells and gates of all places, and the last cell. */
type Forward = [results: Tensor, cells: Tensor, gates: Tensor, last: Tensor];

function inOneKernel(given: readonly Tensor[], sizes: SequenceSizes): Forward {
  const [inputs, weight, bias, hidden, cell] = given as [Tensor, Tensor, Tensor, Tensor, Tensor];
  const { length, batch, width, reverse } = sizes;
  const { device } = inputs;
  const dtype = inputs.dtype as ComputeDType;
  const state = [batch, width];
  const made = [[length, ...state], [length, ...state], inputs.shape, state].map((shape) =>
    Tensor.empty(shape, dtype, device),
  ) as Forward;
  const [results, cells, gates, last] = made;
  device.launch({
    kind: "lstm",
    kernel: device.kernel({ kind: LSTM, dtype }),
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
  return made;
}

/** Copies `count` states between tensors of states. */
function copyRows(source: Tensor, target: Tensor, from: number, to: number, count: number): void {
  const state = target.shape.at(-1)! * target.shape.at(-2)!;
  const at = (place: number) => ({ offset: place * state, strides: [1] });
  copyBox(source, target, [count * state], at(from), at(to));
}

/** What was saved for the gradient. */
type SavedTensors = [inputs: Tensor, weight: Tensor, bias: Tensor, hidden: Tensor, cell: Tensor, ...kept: Tensor[]];

/** From the gradient of the results, or of the last cell. */
function lstmGrad(
  gradient: Tensor | null,
  cellGradient: Tensor | null,
  saved: readonly Tensor[],
  needs: readonly boolean[],
  sizes: SequenceSizes,
): (Tensor | null)[] {
  const [inputs, weight, , hidden, cell, results, cells, gates] = saved as Required<SavedTensors> & Tensor[];
  const { length, batch, reverse } = sizes;
  const { device } = inputs!;
  const dtype = inputs!.dtype as ComputeDType;
  const ofResults = gradient ?? fill(results!.shape, 0, dtype, device);
  const ofLast = cellGradient ?? fill(cell!.shape, 0, dtype, device);
  const rowsOf = (x: Tensor) => reshape(x, [length * batch, x.shape[2]!]);
  const all = (backward: Backward, before: Tensor) => {
    const rows = rowsOf(backward[0]);
    const ofWeight = needs[1] ? matmul(rows, rowsOf(before), { transposeA: true }) : null;
    return [backward[0], ofWeight, needs[2] ? sum(rows, 0) : null, backward[1], backward[2]];
  };
  if (isTaping()) {
    const places = placesOf(saved, sizes);
    return all(
      backwardsByOps(ofResults, ofLast, weight!, places, sizes),
      inOrder(
        places.map(({ h }) => h),
        sizes,
      ),
    );
  }
  // What each place was given by the one before it.
  const before = Tensor.empty(results!.shape, dtype, device);
  copyRows(hidden!, before, 0, reverse ? length - 1 : 0, 1);
  copyRows(results!, before, reverse ? 1 : 0, reverse ? 0 : 1, length - 1);
  if (!device.backend.fuses?.includes("lstmGrad")) {
    return tidy(() => {
      const places = keptPlaces(cell!, cells!, gates!, sizes);
      return all(backwardsByOps(ofResults, ofLast, weight!, places, sizes), before);
    });
  }
  const [ofInputs, ofHidden, ofCell] = [inputs!, hidden!, cell!].map(({ shape }) =>
    Tensor.empty(shape, dtype, device),
  ) as Backward;
  device.launch({
    kind: "lstmGrad",
    kernel: device.kernel({ kind: LSTM_GRAD, dtype }),
    weight: weight!.memorySlice(),
    cell: cell!.memorySlice(),
    cells: cells!.memorySlice(),
    gates: gates!.memorySlice(),
    gradient: ofResults.memorySlice(),
    cellGradient: ofLast.memorySlice(),
    inputsGradient: ofInputs.memorySlice(),
    firstHiddenGradient: ofHidden.memorySlice(),
    firstCellGradient: ofCell.memorySlice(),
    ...sizes,
  });
  return all([ofInputs, ofHidden, ofCell], before);
}

type Backward = [ofInputs: Tensor, ofHidden: Tensor, ofCell: Tensor];

/** The gates of a place and what comes of them, and the cell that it began with. */
interface Place {
  readonly c: Tensor;
  readonly gates: readonly [i: Tensor, f: Tensor, g: Tensor, o: Tensor];
  readonly next: Tensor;
}

const op = (name: ElementwiseName, ...operands: (Tensor | number)[]) => elementwise(name, operands);
const product = (...factors: Tensor[]) => factors.reduce((a, b) => op("mul", a, b));
const rest = (x: Tensor) => op("sub", 1, x);
const orderOf = ({ length, reverse }: SequenceSizes) =>
  Array.from({ length }, (_, i) => (reverse ? length - 1 - i : i));
const placeOf = (x: Tensor, t: number) => reshape(slice(x, t, t + 1), x.shape.slice(1));

/** Of each place in the order in which they are gone through: along the sequence. */
function inOrder(tensors: readonly Tensor[], { reverse }: SequenceSizes): Tensor {
  return concat((reverse ? tensors.toReversed() : tensors).map((x) => reshape(x, [1, ...x.shape])));
}

/** The places in the order in which they are gone through, with the hidden state and the result of each. */
function placesOf(given: readonly Tensor[], sizes: SequenceSizes): (Place & { h: Tensor; result: Tensor })[] {
  const [inputs, weight, bias, hidden, cell] = given as SavedTensors;
  const { width } = sizes;
  const biased = op("add", inputs, bias);
  let [h, c] = [hidden, cell];
  return orderOf(sizes).map((t) => {
    const z = op("add", placeOf(biased, t), matmul(h, weight, { transposeB: true }));
    const gate = (curve: (x: Tensor) => Tensor, n: number) => curve(slice(z, n * width, (n + 1) * width, 1));
    const gates = [gate(sigmoid, 0), gate(sigmoid, 1), gate(tanh, 2), gate(sigmoid, 3)] as const;
    const [i, f, g, o] = gates;
    const next = op("add", op("mul", f, c), op("mul", i, g));
    const result = op("mul", o, op("tanh", next));
    const place = { h, c, gates, next, result };
    [h, c] = [result, next];
    return place;
  });
}

function byOps(given: readonly Tensor[], sizes: SequenceSizes): Forward {
  const places = placesOf(given, sizes);
  return [
    inOrder(
      places.map(({ result }) => result),
      sizes,
    ),
    inOrder(
      places.map(({ next }) => next),
      sizes,
    ),
    inOrder(
      places.map(({ gates }) => concat(gates, 1)),
      sizes,
    ),
    places.at(-1)!.next,
  ];
}

/** The places as a forward computation left them. */
function keptPlaces(cell: Tensor, cells: Tensor, gates: Tensor, sizes: SequenceSizes): Place[] {
  const { width } = sizes;
  let c = cell;
  return orderOf(sizes).map((t) => {
    const own = placeOf(gates, t);
    const [i, f, g, o] = [0, 1, 2, 3].map((n) => slice(own, n * width, (n + 1) * width, 1)) as [
      Tensor,
      Tensor,
      Tensor,
      Tensor,
    ];
    const place: Place = { c, gates: [i, f, g, o], next: placeOf(cells, t) };
    c = place.next;
    return place;
  });
}

/** Through the places from the last: what a cell and a result hand on goes to the gates, and through the weight to the result before. */
function backwardsByOps(
  gradient: Tensor,
  cellGradient: Tensor,
  weight: Tensor,
  places: readonly Place[],
  sizes: SequenceSizes,
): Backward {
  let ofHidden = fill(cellGradient.shape, 0, gradient.dtype, gradient.device);
  let ofCell = cellGradient;
  const order = orderOf(sizes);
  const ofInputs = places.map(({ c, gates: [i, f, g, o], next }, step) => () => {
    const shown = op("tanh", next);
    const d = op("add", ofHidden, placeOf(gradient, order[step]!));
    const ofNext = op("add", ofCell, product(d, o, rest(product(shown, shown))));
    const z = concat(
      [
        product(ofNext, g, i, rest(i)),
        product(ofNext, c, f, rest(f)),
        product(ofNext, i, rest(product(g, g))),
        product(d, shown, o, rest(o)),
      ],
      1,
    );
    [ofHidden, ofCell] = [matmul(z, weight), product(ofNext, f)];
    return z;
  });
  const all = ofInputs.toReversed().map((ofPlace) => ofPlace());
  return [inOrder(all.toReversed(), sizes), ofHidden, ofCell];
}

/** A sequence through an LSTM and its gradient, place by place: the words of its ops, one by one. */
import type { LaunchArguments, SequenceSizes } from "../backend/spec";
import type { ComputeDType, TypedArray } from "../values/dtype";
import { functionOf } from "./generated";
import { multiply } from "./matmul";
import { elements } from "./memory";

/** Places in the order in which they are gone through, each with the one before it: -1 for the first. */
function stepsOf({ length, reverse }: SequenceSizes): readonly (readonly [at: number, before: number])[] {
  const order = Array.from({ length }, (_, t) => (reverse ? length - 1 - t : t));
  return order.map((at, i) => [at, i === 0 ? -1 : order[i - 1]!]);
}

/** What rounds each op, and the functions in the dtype. */
function arithmeticOf(dtype: ComputeDType) {
  const round = dtype === "f32" ? Math.fround : (x: number) => x;
  const [exp, tanh] = dtype === "f32" ? [functionOf("exp"), functionOf("tanh")] : [Math.exp, Math.tanh];
  const product = (...factors: number[]) => factors.reduce((a, b) => round(a * b));
  return {
    round,
    product,
    tanh: (x: number) => round(tanh(x)),
    sigmoid: (x: number) => round(1 / round(1 + round(exp(-x)))),
    rest: (x: number) => round(1 - x),
  };
}

export function lstm(dtype: ComputeDType, launch: LaunchArguments["lstm"]): void {
  const { batch, width } = launch;
  const { round, product, tanh, sigmoid } = arithmeticOf(dtype);
  const inputs = elements(launch.inputs, dtype);
  const weight = elements(launch.weight, dtype);
  const bias = elements(launch.bias, dtype);
  const first = { hidden: elements(launch.hidden, dtype), cell: elements(launch.cell, dtype) };
  const results = elements(launch.results, dtype);
  const cells = elements(launch.cells, dtype);
  const gates = elements(launch.gates, dtype);
  const state = batch * width;
  const products = gates.slice(0, 4 * state);
  const sizes = { batch: 1, m: batch, n: 4 * width, k: width, strideA: 0, strideB: 0 };
  for (const [at, before] of stepsOf(launch)) {
    const hidden: TypedArray = before < 0 ? first.hidden : results.subarray(before * state, (before + 1) * state);
    const cell: TypedArray = before < 0 ? first.cell : cells.subarray(before * state, (before + 1) * state);
    multiply({ dtype, transposeA: false, transposeB: true }, hidden, weight, products, sizes);
    for (let b = 0; b < batch; b++) {
      const row = (at * batch + b) * 4 * width;
      for (let n = 0; n < 4 * width; n++) {
        const z = round(round(inputs[row + n]! + bias[n]!) + products[b * 4 * width + n]!);
        gates[row + n] = n >= 2 * width && n < 3 * width ? tanh(z) : sigmoid(z);
      }
      for (let k = 0; k < width; k++) {
        const [i, f, g, o] = gatesAt(gates, row + k, width);
        const place = at * state + b * width + k;
        const next = round(product(f, cell[b * width + k]!) + product(i, g));
        cells[place] = next;
        results[place] = product(o, tanh(next));
      }
    }
  }
}

function gatesAt(gates: TypedArray, at: number, width: number): [i: number, f: number, g: number, o: number] {
  return [gates[at]!, gates[at + width]!, gates[at + 2 * width]!, gates[at + 3 * width]!];
}

/** Backwards through the places: what a cell and a result hand on goes to the gates, and through the weight to the result before. */
export function lstmGrad(dtype: ComputeDType, launch: LaunchArguments["lstmGrad"]): void {
  const { batch, width } = launch;
  const { round, product, tanh, rest } = arithmeticOf(dtype);
  const weight = elements(launch.weight, dtype);
  const first = elements(launch.cell, dtype);
  const cells = elements(launch.cells, dtype);
  const gates = elements(launch.gates, dtype);
  const g = elements(launch.gradient, dtype);
  const dz = elements(launch.inputsGradient, dtype);
  const ofHidden = elements(launch.firstHiddenGradient, dtype).fill(0);
  const ofCell = elements(launch.firstCellGradient, dtype);
  ofCell.set(elements(launch.cellGradient, dtype));
  const state = batch * width;
  const sizes = { batch: 1, m: batch, n: width, k: 4 * width, strideA: 0, strideB: 0 };
  for (const [at, before] of stepsOf(launch).toReversed()) {
    for (let b = 0; b < batch; b++) {
      const row = (at * batch + b) * 4 * width;
      for (let k = 0; k < width; k++) {
        const own = b * width + k;
        const [i, f, c, o] = gatesAt(gates, row + k, width);
        const last = before < 0 ? first[own]! : cells[before * state + own]!;
        const shown = tanh(cells[at * state + own]!);
        const h = round(ofHidden[own]! + g[at * state + own]!);
        const d = round(ofCell[own]! + product(h, o, rest(product(shown, shown))));
        dz[row + k] = product(d, c, i, rest(i));
        dz[row + width + k] = product(d, last, f, rest(f));
        dz[row + 2 * width + k] = product(d, i, rest(product(c, c)));
        dz[row + 3 * width + k] = product(h, shown, o, rest(o));
        ofCell[own] = product(d, f);
      }
    }
    const rows = dz.subarray(at * batch * 4 * width, (at + 1) * batch * 4 * width);
    multiply({ dtype, transposeA: false, transposeB: false }, rows, weight, ofHidden, sizes);
  }
}

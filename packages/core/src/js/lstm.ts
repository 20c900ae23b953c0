/** A sequence through an LSTM and its gradient, place by place. */
import type { LaunchArguments, SequenceSizes } from "../backend/spec";
import type { ComputeDType, TypedArray } from "../values/dtype";
import { elements } from "./memory";

/** Places in the order in which they are gone through, each with the one before it: -1 for the first. */
function stepsOf({ length, reverse }: SequenceSizes): readonly (readonly [at: number, before: number])[] {
  const order = Array.from({ length }, (_, t) => (reverse ? length - 1 - t : t));
  return order.map((at, i) => [at, i === 0 ? -1 : order[i - 1]!]);
}

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

export function lstm(dtype: ComputeDType, launch: LaunchArguments["lstm"]): void {
  const { batch, width } = launch;
  const inputs = elements(launch.inputs, dtype);
  const weight = elements(launch.weight, dtype);
  const bias = elements(launch.bias, dtype);
  const first = { hidden: elements(launch.hidden, dtype), cell: elements(launch.cell, dtype) };
  const results = elements(launch.results, dtype);
  const cells = elements(launch.cells, dtype);
  const gates = elements(launch.gates, dtype);
  const state = batch * width;
  const z = new Float64Array(4 * width);
  for (const [at, before] of stepsOf(launch)) {
    const hidden: TypedArray = before < 0 ? first.hidden : results.subarray(before * state, (before + 1) * state);
    const cell: TypedArray = before < 0 ? first.cell : cells.subarray(before * state, (before + 1) * state);
    for (let b = 0; b < batch; b++) {
      const row = (at * batch + b) * 4 * width;
      for (let n = 0; n < 4 * width; n++) {
        let sum = inputs[row + n]! + bias[n]!;
        for (let k = 0; k < width; k++) sum += hidden[b * width + k]! * weight[n * width + k]!;
        z[n] = n >= 2 * width && n < 3 * width ? Math.tanh(sum) : sigmoid(sum);
      }
      gates.set(z, row);
      for (let k = 0; k < width; k++) {
        const place = at * state + b * width + k;
        const next = z[width + k]! * cell[b * width + k]! + z[k]! * z[2 * width + k]!;
        cells[place] = next;
        results[place] = z[3 * width + k]! * Math.tanh(next);
      }
    }
  }
}

/** Backwards through the places: what a cell and a result hand on goes to the gates, and through the weight to the result before. */
export function lstmGrad(dtype: ComputeDType, launch: LaunchArguments["lstmGrad"]): void {
  const { batch, width } = launch;
  const weight = elements(launch.weight, dtype);
  const first = elements(launch.cell, dtype);
  const cells = elements(launch.cells, dtype);
  const gates = elements(launch.gates, dtype);
  const g = elements(launch.gradient, dtype);
  const dz = elements(launch.inputsGradient, dtype);
  const state = batch * width;
  const ofHidden = new Float64Array(state);
  const ofCell = Float64Array.from(elements(launch.cellGradient, dtype));
  for (const [at, before] of stepsOf(launch).toReversed()) {
    for (let b = 0; b < batch; b++) {
      const row = (at * batch + b) * 4 * width;
      for (let k = 0; k < width; k++) {
        const own = b * width + k;
        const [i, f, c, o] = [0, 1, 2, 3].map((gate) => gates[row + gate * width + k]!) as [
          number,
          number,
          number,
          number,
        ];
        const last = before < 0 ? first[own]! : cells[before * state + own]!;
        const shown = Math.tanh(cells[at * state + own]!);
        const h = ofHidden[own]! + g[at * state + own]!;
        const d = ofCell[own]! + h * o * (1 - shown * shown);
        dz[row + k] = d * c * i * (1 - i);
        dz[row + width + k] = d * last * f * (1 - f);
        dz[row + 2 * width + k] = d * i * (1 - c * c);
        dz[row + 3 * width + k] = h * shown * o * (1 - o);
        ofCell[own] = d * f;
      }
      for (let k = 0; k < width; k++) {
        let sum = 0;
        for (let n = 0; n < 4 * width; n++) sum += dz[row + n]! * weight[n * width + k]!;
        ofHidden[b * width + k] = sum;
      }
    }
  }
  elements(launch.firstHiddenGradient, dtype).set(ofHidden);
  elements(launch.firstCellGradient, dtype).set(ofCell);
}

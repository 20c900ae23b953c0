/** A sequence through an LSTM and its gradient in float64, by its definition. */
import type { SequenceSizes } from "@opt/core/backend";

type Numbers = ArrayLike<number>;

export interface LstmInputs {
  readonly inputs: Numbers;
  readonly weight: Numbers;
  readonly bias: Numbers;
  readonly hidden: Numbers;
  readonly cell: Numbers;
}

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));

export function lstm({ inputs, weight, bias, hidden, cell }: LstmInputs, sizes: SequenceSizes) {
  const { length, batch, width, reverse } = sizes;
  const [results, cells] = [new Float64Array(length * batch * width), new Float64Array(length * batch * width)];
  const gates = new Float64Array(4 * results.length);
  let [h, c] = [Array.from(hidden), Array.from(cell)];
  for (let step = 0; step < length; step++) {
    const t = reverse ? length - 1 - step : step;
    const [nextH, nextC] = [new Array<number>(batch * width), new Array<number>(batch * width)];
    for (let own = 0; own < batch * width; own++) {
      const [b, unit] = [Math.floor(own / width), own % width];
      const row = (t * batch + b) * 4 * width;
      const z = [0, 1, 2, 3].map((gate) => {
        const n = gate * width + unit;
        const product = Array.from({ length: width }, (_, k) => h[b * width + k]! * weight[n * width + k]!);
        return product.reduce((sum, x) => sum + x, inputs[row + n]! + bias[n]!);
      });
      const of = z.map((x, gate) => (gate === 2 ? Math.tanh(x) : sigmoid(x)));
      for (const [gate, value] of of.entries()) gates[row + gate * width + unit] = value;
      nextC[own] = of[1]! * c[own]! + of[0]! * of[2]!;
      nextH[own] = of[3]! * Math.tanh(nextC[own]!);
    }
    [h, c] = [nextH, nextC];
    results.set(h, t * batch * width);
    cells.set(c, t * batch * width);
  }
  return { results, cells, gates, last: Float64Array.from(c) };
}

/** Of inputs, hidden and cell, from the gradients of the results and of the last cell: from the last place to the first. */
export function lstmGrad(given: LstmInputs, gradient: Numbers, cellGradient: Numbers, sizes: SequenceSizes) {
  const { length, batch, width, reverse } = sizes;
  const { cells, gates } = lstm(given, sizes);
  const inputsGradient = new Float64Array(gates.length);
  let [ofHidden, ofCell] = [new Float64Array(batch * width), Float64Array.from(cellGradient)];
  for (let step = length - 1; step >= 0; step--) {
    const [t, before] = reverse ? [length - 1 - step, length - step] : [step, step - 1];
    const at = t * batch * width;
    const dz = (b: number, n: number) => inputsGradient[(t * batch + b) * 4 * width + n]!;
    ofCell = ofCell.map((handed, own) => {
      const row = (t * batch + Math.floor(own / width)) * 4 * width + (own % width);
      const [i, f, g, o] = [0, 1, 2, 3].map((gate) => gates[row + gate * width]!) as [number, number, number, number];
      const last = step === 0 ? given.cell[own]! : cells[before * batch * width + own]!;
      const shown = Math.tanh(cells[at + own]!);
      const h = ofHidden[own]! + gradient[at + own]!;
      const c = handed + h * o * (1 - shown ** 2);
      const slopes = [c * g * i * (1 - i), c * last * f * (1 - f), c * i * (1 - g ** 2), h * shown * o * (1 - o)];
      for (const [gate, slope] of slopes.entries()) inputsGradient[row + gate * width] = slope;
      return c * f;
    });
    ofHidden = ofHidden.map((_, own) => {
      const [b, unit] = [Math.floor(own / width), own % width];
      let sum = 0;
      for (let n = 0; n < 4 * width; n++) sum += dz(b, n) * given.weight[n * width + unit]!;
      return sum;
    });
  }
  return { inputsGradient, firstHiddenGradient: ofHidden, firstCellGradient: ofCell };
}

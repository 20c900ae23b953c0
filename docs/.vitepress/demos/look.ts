/** What one sees of a tensor's numbers. */
import type { Look } from "./checkpoint-messages";

const BARS = 40;

export function lookAt(values: Float64Array): Look {
  let [least, most, sum, squares, count] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 0, 0];
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    least = Math.min(least, value);
    most = Math.max(most, value);
    sum += value;
    squares += value * value;
    count++;
  }
  const mean = sum / count;
  const bars = new Array<number>(BARS).fill(0);
  for (const value of values)
    if (Number.isFinite(value)) bars[Math.min(BARS - 1, Math.floor((BARS * (value - least)) / (most - least || 1)))]!++;
  const deviation = Math.sqrt(Math.max(0, squares / count - mean * mean));
  return { least, most, mean, deviation, bars, others: values.length - count };
}

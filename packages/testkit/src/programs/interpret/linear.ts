/** Products of matrices, and a layer of them. */
import { sizeOf } from "../numbers";
import { broadcast } from "../op-kind";
import type { Shape } from "../program";
import { reshape, transpose, unsqueeze } from "./arranging";
import { add } from "./elementwise";
import { type Node, reshaped, times } from "./node";
import { mustHold, stretched } from "./places";
import { sum } from "./reducing";

export function matmul(a: Node, b: Node): Node {
  // A vector is a row on the left and a column on the right, and the result lacks its axis.
  if (b.shape.length === 1) return reshaped(...withoutAxis(matmul(a, unsqueeze(b, -1)), -1));
  if (a.shape.length === 1) return reshaped(...withoutAxis(matmul(unsqueeze(a, 0), b), -2));
  mustHold(a.shape.length >= 2 && b.shape.length >= 2, `matrices, got [${a.shape}] and [${b.shape}]`);
  const [m, k, n] = [a.shape.at(-2)!, a.shape.at(-1)!, b.shape.at(-1)!];
  const leading = broadcast([a.shape.slice(0, -2), b.shape.slice(0, -2)]);
  mustHold(b.shape.at(-2) === k && leading !== null, `[${a.shape}] times [${b.shape}]`);
  const shape = [...leading, m, n, k];
  const left = stretched(unsqueeze(a, -2), shape);
  return sum(times(left, stretched(unsqueeze(transpose(b), -3), shape)), { axis: -1 });
}

const withoutAxis = (x: Node, axis: number): [Node, Shape] => [x, x.shape.toSpliced(axis, 1)];

export const linear = (x: Node, weight: Node, bias?: Node): Node => {
  mustHold(x.shape.length > 0 && x.shape.at(-1) === weight.shape[1], `[${x.shape}] of width ${weight.shape[1]}`);
  const rows = reshape(x, [sizeOf(x.shape.slice(0, -1)), x.shape.at(-1)!]);
  const result = reshape(matmul(rows, transpose(weight)), [...x.shape.slice(0, -1), weight.shape[0]!]);
  return bias === undefined ? result : add(result, bias);
};

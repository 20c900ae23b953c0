/** What PyTorch's brackets choose, and writing there. */
import { sizeOf } from "../numbers";
import { broadcast } from "../op-kind";
import type { IndexItem, Shape } from "../program";
import { asNode, type Interpretation, type Operand } from "./elementwise";
import { constant, Node, pick, plus, put, times } from "./node";
import { eachPlace, mustHold, stretched, stridesOf } from "./places";

/** What is left of an axis: positions in order, or those of index tensors, which are broadcast with the others. */
interface Axis {
  readonly stride: number;
  readonly positions?: readonly number[];
  readonly picked?: Node;
}

/** The places in row-major order that an index chooses, in the shape of what is chosen. */
export function chosen(shape: Shape, index: readonly IndexItem[], tensors: readonly Node[]): Node {
  const strides = stridesOf(shape);
  const rest = [...tensors];
  const axes: Axis[] = [];
  let offset = 0;
  let axis = 0;
  const items = [...index];
  while (axis < shape.length || items.length > 0) {
    mustHold(axis < shape.length, `an index for each of [${shape}]`);
    const item = items.length > 0 ? items.shift()! : null;
    const [extent, stride] = [shape[axis]!, strides[axis]!];
    axis++;
    if (typeof item === "number") {
      mustHold(item >= -extent && item < extent, `${item} of ${extent}`);
      offset += stride * (item < 0 ? item + extent : item);
    } else if (item === "mask") {
      const mask = rest.shift()!;
      const covered = shape.slice(axis - 1, axis - 1 + mask.shape.length);
      mustHold(String(mask.shape) === String(covered) && covered.length > 0, `a mask [${mask.shape}] of [${covered}]`);
      axis += covered.length - 1;
      // The covered axes as one.
      const places = [...mask.data.keys()].filter((place) => mask.data[place] !== 0);
      axes.push({
        stride: strides[axis - 1]!,
        picked: new Node([places.length], Float64Array.from(places)),
      });
    } else if (item === "tensor") {
      const picked = rest.shift()!;
      mustHold(
        picked.data.every((position) => position >= 0 && position < extent),
        `positions below ${extent}`,
      );
      axes.push({ stride, picked });
    } else axes.push({ stride, positions: positionsOf(item, extent) });
  }
  return withPicks(axes, offset);
}

function positionsOf(range: readonly (number | null)[] | null, extent: number): number[] {
  const [start, end, step] = range ?? [];
  const at = (bound: number) => Math.min(Math.max(bound < 0 ? bound + extent : bound, 0), extent);
  const positions: number[] = [];
  for (let i = at(start ?? 0); i < at(end ?? extent); i += step ?? 1) positions.push(i);
  return positions;
}

/** Axes of index tensors that are side by side stay there; others come first. */
function withPicks(axes: readonly Axis[], offset: number): Node {
  const picks = axes.filter(({ picked }) => picked !== undefined);
  const together = broadcast(picks.map(({ picked }) => picked!.shape));
  mustHold(together !== null, "index tensors that fit");
  const first = axes.findIndex(({ picked }) => picked !== undefined);
  const areSide = picks.every((one, i) => axes[first + i] === one);
  const plain = axes.filter(({ positions }) => positions !== undefined);
  const before = picks.length === 0 ? plain.length : areSide ? first : 0;
  const shape = plain.map(({ positions }) => positions!.length);
  const full = [...shape.slice(0, before), ...(picks.length > 0 ? together : []), ...shape.slice(before)];
  const count = picks.length > 0 ? together.length : 0;
  const pickedPlaces = new Float64Array(sizeOf(together));
  for (const { picked, stride } of picks) {
    stretched(picked!, together).data.forEach((position, i) => {
      pickedPlaces[i]! += position * stride;
    });
  }
  const strides = stridesOf(together);
  const places = eachPlace(full, (indices) => {
    const own = indices.toSpliced(before, count);
    const at = indices.slice(before, before + count).reduce((sum, i, axis) => sum + i * strides[axis]!, 0);
    const ofPicks = picks.length > 0 ? pickedPlaces[at]! : 0;
    return own.reduce((sum, i, axis) => sum + plain[axis]!.stride * plain[axis]!.positions![i]!, offset + ofPicks);
  });
  return new Node(full, Float64Array.from(places));
}

/** x with a value where an index chooses. Of equal places the last counts, and each element of the value has a gradient. */
export function written(x: Node, value: Node, places: Node, accumulate: boolean): Node {
  mustHold(
    String(broadcast([value.shape, places.shape])) === String(places.shape) &&
      value.shape.length <= places.shape.length,
    `a value of [${places.shape}], got [${value.shape}]`,
  );
  const given = stretched(value, places.shape);
  if (accumulate) return plus(x, put(given, places.data, x.shape));
  const data = x.data.slice();
  const kept = new Float64Array(x.data.length).fill(1);
  places.data.forEach((place, i) => {
    data[place] = given.data[i]!;
    kept[place] = 0;
  });
  const isKept = constant({ shape: x.shape, data: kept });
  return new Node(x.shape, data, [
    { of: x, pull: (g) => times(g, isKept) },
    { of: given, pull: (g) => pick(g, places.data, places.shape) },
  ]);
}

const nodes = (operands: readonly Operand[]): Node[] => operands.map(asNode);

export const INDEXING: Readonly<Record<string, Interpretation>> = {
  at: ([x, ...tensors], { index }) => {
    const places = chosen(asNode(x!).shape, index as IndexItem[], nodes(tensors));
    return pick(asNode(x!), places.data, places.shape);
  },
  indexPut: ([x, value, ...tensors], { index, accumulate }) => {
    const places = chosen(asNode(x!).shape, index as IndexItem[], nodes(tensors));
    return written(asNode(x!), asNode(value!), places, accumulate === true);
  },
};

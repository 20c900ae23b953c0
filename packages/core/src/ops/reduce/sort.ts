/** Elements of an axis in order. */

import { inEachRun } from "../../device/host-code";
import { tidy } from "../../device/scope";
import { checkOptions } from "../../errors/options";
import { Expression } from "../../rule/expression";
import { type Program, trace } from "../../rule/program";
import { less, where } from "../../rule/symbols";
import { overSamples } from "../../tensor/batching";
import { decode } from "../../tensor/read";
import { noGrad } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { byteSize } from "../../values/dtype";
import { axisOfElements } from "../../values/shape";
import { cast, clone } from "../cast";
import { checkTensor } from "../check-tensor";
import { computeOn } from "../compute";
import { definePrimitive } from "../define-function";
import { ifNumber } from "../elementwise/conditions";
import { elementwise } from "../elementwise/elementwise";
import { scatterRows } from "../indices/gather";
import { gatherAlong } from "../indices/gather-along";
import { positions } from "../indices/positions";
import { launchMap } from "../map";
import { expand } from "../shape/extents";
import { concat, reshape, slice, transpose } from "../shape/shape";
import { sum } from "./reduce";

export interface SortOptions {
  /** The largest first. Default false. */
  readonly descending?: boolean;
  /** Of equals the first comes first: here it always does. Default false. */
  readonly stable?: boolean;
}

/** What `sort` found, in x's shape. */
export interface Sorted {
  readonly values: Tensor;
  /** i32: where the values were along the axis. */
  readonly indices: Tensor;
}

/**
 * The elements along an axis in ascending order, and where they were; NaN counts as largest, equals keep their order. The gradient goes back
 * to where they were. Devices without the host's memory compare each two elements of a row: n^2 steps for n elements.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * const { values, indices } = sort(tensor([3, 1, 2])); // [1, 2, 3] and [1, 2, 0]
 */
export const sort = /* @__PURE__ */ definePrimitive(
  { torch: "torch.sort(a, dim=$0, stable=True)", arguments: ["$axis"] },
  (x: Tensor, axis = -1, options: SortOptions = {}): Sorted => {
    const samples = overSamples(sort, x, axis, options);
    if (samples) return samples;
    return tidy(() => {
      const indices = order("sort", x, axis, options);
      if (x.shape.length > 0) return { values: gatherAlong(x, indices, axis), indices };
      return { values: clone(x), indices };
    });
  },
);

/**
 * Where the elements along an axis are that `sort` gives: i32 in x's shape.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * argsort(tensor([3, 1, 2]), 0, { descending: true }); // [0, 2, 1]
 */
export const argsort = /* @__PURE__ */ definePrimitive(
  { torch: "torch.argsort(a, dim=$0, stable=True)", arguments: ["$axis"] },
  (x: Tensor, axis = -1, options: SortOptions = {}): Tensor => {
    const samples = overSamples(argsort, x, axis, options);
    if (samples) return samples;
    return tidy(() => order("argsort", x, axis, options));
  },
);

function order(where: string, x: Tensor, axis: number, options: SortOptions): Tensor {
  checkTensor(where, x);
  checkOptions(where, options, { descending: "boolean", stable: "boolean" });
  const along = axisOfElements(where, axis, x.shape);
  const { descending = false } = options;
  return noGrad(() => {
    if (x.size <= 1) return positions(x.shape, x.device);
    const last = transpose(x, along, -1);
    const found = x.device.backend.sharesMemory ? byHost(last, descending) : byDevice(last, descending);
    return transpose(found, along, -1);
  });
}

/** Along the last axis, by the host, which sees the memory. */
function byHost(x: Tensor, descending: boolean): Tensor {
  const found = Tensor.empty(x.shape, "i32", x.device);
  inEachRun([x, found], (x, found) => {
    const { device, size, dtype } = x;
    const from = x.memorySlice();
    const values = decode(
      { size, dtype },
      device.backend.readSync!(from.memory, from.byteOffset, size * byteSize(dtype)),
    );
    const places = new Int32Array(size);
    const length = x.shape.at(-1)!;
    for (let start = 0; start < size; start += length) {
      const row = values.subarray(start, start + length);
      const compared = descending
        ? (a: number, b: number) => compare(row, b, a)
        : (a: number, b: number) => compare(row, a, b);
      const order = places.subarray(start, start + length);
      for (let i = 0; i < length; i++) order[i] = i;
      order.sort((a, b) => compared(a, b) || a - b);
    }
    const to = found.memorySlice();
    device.backend.write(to.memory, to.byteOffset, new Uint8Array(places.buffer));
  });
  return found;
}

function compare(values: ArrayLike<number>, a: number, b: number): number {
  const [x, y] = [values[a]!, values[b]!];
  if (x < y) return -1;
  if (y < x) return 1;
  return Number(Number.isNaN(x)) - Number(Number.isNaN(y));
}

/** 1 where a is before b: smaller, or a number where b is NaN; of equals, and of two NaN, the one whose place is. */
function beforeOf(descending: boolean): Program {
  const [x, y, atX, atY] = [0, 1, 2, 3].map((slot) => new Expression("buffer", [], slot)) as [
    Expression,
    Expression,
    Expression,
    Expression,
  ];
  const [a, b] = descending ? [y, x] : [x, y];
  const tie = where(less(atX, atY), 1, 0);
  const expression = where(less(a, b), 1, where(less(b, a), 0, ifNumber(a, ifNumber(b, tie, 1), ifNumber(b, 0, tie))));
  return trace(["x", "y", "atX", "atY"], [], [{ slot: 0, expression }]);
}

const BEFORE = /* @__PURE__ */ [false, true].map(beforeOf);

/** Comparisons in memory at once. */
const HELD = 2 ** 22;

/** Along the last axis: each element's rank is the number of those before it. */
function byDevice(x: Tensor, descending: boolean): Tensor {
  const { device, shape, size } = x;
  const length = shape.at(-1)!;
  const compute = computeOn(device, x.dtype);
  const rows = size / length;
  const all = reshape(cast(x, compute), [rows, 1, length]);
  const [at, atAll] = [
    [length, 1],
    [1, length],
  ].map((extents) => cast(positions(extents, device), compute)) as [Tensor, Tensor];
  const step = Math.max(1, Math.floor(HELD / size));
  const parts: Tensor[] = [];
  for (let start = 0; start < length; start += step) {
    const end = Math.min(start + step, length);
    const some = reshape(slice(all, start, end, 2), [rows, end - start, 1]);
    const part = tidy(() => {
      const before = launchMap(
        BEFORE[Number(descending)]!,
        compute,
        [all, some, atAll, slice(at, start, end)],
        [],
        [rows, end - start, length],
      );
      return sum(before, 2);
    });
    parts.push(part);
  }
  const ranks = cast(concat(parts, 1), "i32");
  const places = reshape(elementwise("add", [ranks, positions([rows, 1], device, length)]), [size]);
  const numbers = expand(positions([1, length], device), [rows, length]);
  return reshape(cast(scatterRows(reshape(cast(numbers, "f32"), [size]), places, [size]), "i32"), shape);
}

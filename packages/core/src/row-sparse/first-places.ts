/** Where each index of a list came first: rows that occur more than once are added up there. */
import { inEachRun } from "../device/host-code";
import { argmax, cast, clone, concat } from "../ops";
import { computeOn } from "../ops/compute";
import { scatterRows } from "../ops/indices/gather";
import { fill, launchMap } from "../ops/map";
import { Expression } from "../rule/expression";
import { type Program, trace } from "../rule/program";
import { less, where } from "../rule/symbols";
import { Tensor } from "../tensor/tensor";

/** Both i32, and as long as the list. */
export interface FirstPlaces {
  /** The place at which the same index came first; -1 for an index below 0, which is no row. */
  readonly places: Tensor;
  /** The indices, each where it came first; -1 elsewhere. */
  readonly rows: Tensor;
}

/** Of i32 indices [n]. Nothing waits for the device, and each run of a compiled function finds the places of its own indices. */
export function firstPlaces(indices: Tensor): FirstPlaces {
  return indices.device.backend.sharesMemory ? byHost(indices) : byDevice(indices);
}

/** The host looks into memory that it shares. */
function byHost(indices: Tensor): FirstPlaces {
  const { device, shape } = indices;
  const places = Tensor.empty(shape, "i32", device);
  const rows = Tensor.empty(shape, "i32", device);
  inEachRun([indices, places, rows], findPlaces);
  return { places, rows };
}

function findPlaces(indices: Tensor, ...results: [places: Tensor, rows: Tensor]): void {
  const { backend } = indices.device;
  const { memory, byteOffset, length } = indices.memorySlice();
  const rows = new Int32Array(backend.readSync!(memory, byteOffset, 4 * length).slice().buffer);
  const places = new Int32Array(rows.length);
  const seen = new Map<number, number>();
  for (let i = 0; i < rows.length; i++) {
    const known = rows[i]! < 0 ? -1 : seen.get(rows[i]!);
    places[i] = known ?? i;
    if (known === undefined) seen.set(rows[i]!, i);
    else rows[i] = -1;
  }
  [places, rows].forEach(({ buffer }, k) => {
    const { memory, byteOffset } = results[k]!.memorySlice();
    backend.write(memory, byteOffset, new Uint8Array(buffer));
  });
}

function programOf(buffers: string[], compute: (...inputs: Expression[]) => Expression): Program {
  const expression = compute(...buffers.map((_, slot) => new Expression("buffer", [], slot)));
  return trace(buffers, [], [{ slot: 0, expression }]);
}

const EQUAL = /* @__PURE__ */ programOf(["left", "right"], (a, b) => where(less(a!, b!), 0, where(less(b!, a!), 0, 1)));
/** The second where the first is above 0, else the third. */
export const WHERE_COUNTED = /* @__PURE__ */ programOf(["count", "counted", "other"], (count, counted, other) =>
  where(less(0, count!), counted!, other!),
);

const WHERE_ROW = /* @__PURE__ */ programOf(["index", "place"], (index, place) => where(less(index!, 0), -1, place!));

/** Comparisons in memory at once. */
const HELD = 2 ** 22;

/** The device compares all of them with each other. */
function byDevice(indices: Tensor): FirstPlaces {
  const { device, size, shape } = indices;
  if (size === 0) return { places: clone(indices), rows: clone(indices) };
  const compute = computeOn(device, "i32");
  const list = cast(indices, compute);
  const all = list.reshape([1, size]);
  const step = Math.max(1, Math.floor(HELD / size));
  const parts: Tensor[] = [];
  for (let start = 0; start < size; start += step) {
    const end = Math.min(start + step, size);
    const some = list.slice(start, end).reshape([end - start, 1]);
    const equal = launchMap(EQUAL, compute, [some, all], [], [end - start, size]);
    parts.push(argmax(equal, 1)); // the first of equal ones
    equal.dispose();
  }
  const firsts = parts.length === 1 ? parts[0]! : concat(parts);
  const places = cast(launchMap(WHERE_ROW, compute, [list, cast(firsts, compute)], [], shape), "i32");
  const counts = scatterRows(fill([size], 1, "f32", device), places, shape);
  const nowhere = fill([1], -1, compute, device);
  return {
    places,
    rows: cast(launchMap(WHERE_COUNTED, compute, [cast(counts, compute), list, nowhere], [], shape), "i32"),
  };
}

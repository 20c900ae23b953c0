/** Calls of the ops that choose, put and order elements, with what PyTorch would be called: random shapes and options. */
import { type CallInput, Random, type TorchCall } from "@opt/testkit";
import * as F from "../src/functions";
import type { Tensor } from "../src/tensor/tensor";
import type { DType } from "../src/values/dtype";
import { sizeOf } from "../src/values/shape";

type Shape = readonly number[];

const python = (values: readonly unknown[]) => `(${values.map((value) => `${value},`).join(" ")})`;
const bool = (value: boolean) => (value ? "True" : "False");

/** `rounds` calls of each op. The same seed gives the same calls. */
export function indexCalls(seed: number, rounds: number): TorchCall[] {
  return Array.from({ length: rounds }, (_, round) => callsOf(new Random(seed + round), round)).flat();
}

function callsOf(random: Random, round: number): TorchCall[] {
  const calls: TorchCall[] = [];
  const int = (below: number) => random.below(below);
  const shape = Array.from({ length: 1 + int(3) }, () => (int(12) === 0 ? 0 : 1 + int(4)));
  const rank = shape.length;
  const axis = int(rank);
  const given = int(2) === 0 ? axis : axis - rank;
  const extent = shape[axis]!;
  /** Quarters with ties, or numbers without them. */
  const numbers = (of: Shape, dtype: DType = "f64"): CallInput => ({
    values: Array.from({ length: sizeOf(of) }, () =>
      dtype === "f64" ? int(1000) / 64 - 7 : int(dtype === "bool" ? 2 : 9),
    ),
    shape: of,
    dtype,
    requiresGrad: dtype === "f64",
  });
  const indices = (of: Shape, below: number): CallInput => ({
    values: Array.from({ length: below === 0 ? 0 : sizeOf(of) }, () => int(below)),
    shape: below === 0 ? of.with(0, 0) : of,
    dtype: "i32",
  });
  const add = (name: string, inputs: CallInput[], code: string, run: TorchCall["run"]) => {
    const title = `${round}: ${name} of ${inputs.map((each) => `${each.dtype} [${each.shape}]`).join(", ")}`;
    calls.push({ name: title, inputs, code, run, second: inputs.some((each) => each.requiresGrad) });
  };
  const dtype = random.pick(["f64", "f64", "i32", "u8", "bool"] as const);
  const x = numbers(shape, dtype);

  const place = int(extent + 2) - (int(2) === 0 ? extent : 0) || 0;
  add(`select ${place} on ${given}`, [x], `a.select(${given}, ${place})`, (a) => a.select(given, place));
  const chosen = shape
    .slice(0, 1 + int(rank))
    .map((e) => (int(2) === 0 || e === 0 ? null : int(e) - (int(2) === 0 ? e : 0)));
  const brackets = chosen.map((each) => (each === null ? ":" : each)).join(", ");
  add(`at ${brackets}`, [x], `a[${brackets}].clone()`, (a) => F.at(a, ...chosen));
  const turned = shape.map((_, i) => i).filter(() => int(2) === 0);
  add(`flip ${turned}`, [x], `a.flip(${python(turned)})`, (a) => F.flip(a, turned));
  const shift = int(11) - 5;
  add(`roll ${shift}`, [x], `a.roll(${shift}, ${given})`, (a) => F.roll(a, shift, given));
  add(`roll ${shift} of all`, [x], `a.roll(${shift})`, (a) => F.roll(a, shift));
  const repeats = [...Array.from({ length: int(2) }, () => 1 + int(2)), ...shape.map(() => int(3))];
  add(`repeat ${repeats}`, [x], `a.repeat(${python(repeats)})`, (a) => F.repeat(a, repeats));
  const chunks = 1 + int(4);
  add(`chunk ${chunks}`, [x], `a.chunk(${chunks}, ${given})`, (a) => F.chunk(a, chunks, given));

  const descending = int(2) === 0;
  const sorted = `a.sort(${given}, ${bool(descending)}, stable=True)`.replace(
    /a.sort\((.*), (.*), stable=True\)/,
    "torch.sort(a, dim=$1, descending=$2, stable=True)",
  );
  add(`sort ${descending}`, [x], `list(${sorted})`, (a) => {
    const { values, indices } = F.sort(a, given, { descending, stable: true });
    return [values, indices];
  });
  add(
    `argsort ${descending}`,
    [
      {
        ...numbers(shape),
        requiresGrad: false,
        values: Array.from({ length: sizeOf(shape) }, () =>
          random.pick([Number.NaN, 0, -0, 1, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY]),
        ),
      },
    ],
    `torch.argsort(a, dim=${given}, descending=${bool(descending)}, stable=True)`,
    (a) => F.argsort(a, given, { descending }),
  );

  const along = indices([1 + int(5)], extent);
  const source = numbers(shape.with(axis, along.shape[0]!), dtype === "bool" ? "f64" : dtype);
  const table = numbers(shape, source.dtype);
  const alpha = random.pick([1, 2, -3]);
  add(
    `indexAdd ${alpha} on ${given}`,
    [table, along, source],
    `a.index_add(${given}, b, c, alpha=${alpha})`,
    (a, b, c) => F.indexAdd(a, given, b, c, { alpha }),
  );
  const part = shape.map((e, i) => (i === axis ? (extent === 0 ? 0 : 1 + int(4)) : int(e + 1)));
  const at: CallInput = {
    values: Array.from({ length: sizeOf(part) }, () => int(Math.max(extent, 1))),
    shape: part,
    dtype: "i32",
  };
  const larger = numbers(
    part.map((e) => e + int(2)),
    source.dtype,
  );
  const exact = numbers(part, source.dtype);
  // PyTorch's gradient of the source wants the shape of the indices.
  const taken = int(2) === 0 ? exact : { ...larger, requiresGrad: false };
  add(`scatterAdd on ${given}`, [table, at, taken], `a.scatter_add(${given}, b.long(), c)`, (a, b, c) =>
    F.scatterAdd(a, given, b, c),
  );
  // Of equal indices PyTorch's gradient takes all.
  const distinct: CallInput = { ...at, ...distinctAlong(random, shape, axis) };
  add(
    `scatter on ${given}`,
    [table, distinct, numbers(distinct.shape, source.dtype)],
    `a.scatter(${given}, b.long(), c)`,
    (a, b, c) => F.scatter(a, given, b, c),
  );
  add(
    `scatter of equals on ${given}`,
    [{ ...table, requiresGrad: false }, at, { ...exact, requiresGrad: false }],
    `a.scatter(${given}, b.long(), c)`,
    (a, b, c) => F.scatter(a, given, b, c),
  );
  add(`scatter of a number on ${given}`, [table, at], `a.scatter(${given}, b.long(), 3)`, (a, b) =>
    F.scatter(a, given, b, 3),
  );
  add(`gatherAlong ${given}`, [table, at], `a.gather(${given}, b.long())`, (a, b) => F.gatherAlong(a, b, given));

  const correction = int(3);
  const keepDim = int(2) === 0;
  const many = numbers([2 + correction, 3]);
  add(`std less ${correction}`, [many], `a.std(0, correction=${correction}, keepdim=${bool(keepDim)})`, (a) =>
    a.std(0, { correction, keepDim }),
  );
  add(`var less ${correction}`, [many], `a.var(0, correction=${correction}, keepdim=${bool(keepDim)})`, (a) =>
    a.var(0, { correction, keepDim }),
  );
  add("max", [numbers([3, 4])], `a.amax(1, keepdim=${bool(keepDim)})`, (a) => F.max(a, 1, keepDim));
  add("min", [numbers([3, 4])], `a.amin(1, keepdim=${bool(keepDim)})`, (a) => F.min(a, 1, keepDim));
  const infinite = numbers([2, 5]);
  const edge = random.pick([Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]);
  const holes: CallInput = {
    ...infinite,
    requiresGrad: false,
    values: Array.from(infinite.values, (v) => (int(2) === 0 ? edge : v)),
  };
  const k = 1 + int(5);
  const largest = int(2) === 0;
  // Where equals are chosen, PyTorch takes any of them: their values, and that no place comes twice.
  add(
    `topk ${k} with ${edge}`,
    [holes],
    `a.topk(${k}, 1, ${bool(largest)}).values, torch.full((2,), ${k}, dtype=torch.int32)`,
    (a) => {
      const { values, indices } = F.topk(a, k, 1, { largest });
      return [values, differing(indices)];
    },
  );
  return calls;
}

/** How many different numbers each row has. */
function differing(indices: Tensor): Tensor {
  return F.oneHot(indices, 5).max(1).sum(1);
}

function distinctAlong(random: Random, shape: Shape, axis: number): { values: number[]; shape: Shape } {
  const extent = shape[axis]!;
  const count = extent === 0 ? 0 : 1 + random.below(extent);
  const step = extent % 2 === 0 ? 1 : 2;
  const part = shape.with(axis, count);
  const inner = sizeOf(part.slice(axis + 1));
  const start = random.below(Math.max(extent, 1));
  const values = Array.from(
    { length: sizeOf(part) },
    (_, i) => (start + step * (Math.floor(i / inner) % count)) % extent,
  );
  return { values, shape: part };
}

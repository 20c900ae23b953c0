/** Reductions whose bits do not depend on who computes: each rank receives every contribution to its part and adds them in rank order. */
import { check, keep, noGrad, type Tensor, tidy } from "@opt/core";
import { byteSize } from "@opt/core/backend";
import type { Reduction } from "../engine/engine";
import { all, type Group, type Operation, others } from "./group";
import { type Part, partsOf } from "./parts";
import { arriving, bytesOf, movedIn, overwrite, roomLike } from "./staging";

const CONTRIBUTIONS = 0;
const RESULTS = 1;

/** @throws OptError BAD_ARGUMENT, BAD_DTYPE */
export function checkReduction(where: string, x: Tensor, reduction: unknown): asserts reduction is Reduction {
  const known = ["sum", "mean", "min", "max"];
  const isKnown = typeof reduction === "string" && known.includes(reduction);
  const problem = () => `the reduction must be one of ${known.join(", ")}, got ${String(reduction)}.`;
  check(isKnown, "BAD_ARGUMENT", where, problem);
  check(x.dtype !== "bool", "BAD_DTYPE", where, () => "truth values are not added.", `Use .to("i32").`);
  const isFloat = x.dtype !== "i32" && x.dtype !== "u8";
  const mean = () => `a mean needs a floating-point tensor, got ${x.dtype}.`;
  check(isFloat || reduction !== "mean", "BAD_DTYPE", where, mean, `Use "sum", or .to("f32").`);
}

/** x = the reduction over the ranks, in place: each rank sends n (W - 1) / W elements, twice. */
export async function allReduce(group: Group, where: string, x: Tensor, reduction: Reduction): Promise<void> {
  const operation = group.begin(where);
  if (group.size === 1) return;
  const parts = partsOf(x.size, group.size);
  const mine = parts[group.rank]!;
  const sum = await reducePart(group, operation, x, parts, reduction);
  try {
    const reduced = await bytesOf(sum);
    const width = byteSize(x.dtype);
    const incoming = arriving(x);
    incoming.bytes.set(reduced, mine.begin * width);
    const results = others(group).flatMap((rank) => [
      ...(sum.size === 0 ? [] : [operation.send(rank, RESULTS, reduced)]),
      ...(isEmpty(parts[rank]!) ? [] : [operation.receive(rank, RESULTS, cut(incoming.bytes, parts[rank]!, width))]),
    ]);
    await movedIn([sum, x], all(results));
    incoming.done();
  } finally {
    sum.dispose();
  }
}

/** As `allReduce`, by the engine's own where it has one: what order it adds in is its own affair. */
export async function allReduceByEngine(group: Group, where: string, x: Tensor, reduction: Reduction): Promise<void> {
  const engines = group.size === 1 ? undefined : group.world.engine.allReduceOf?.(group.members, x.dtype);
  if (engines === undefined || x.size === 0) return allReduce(group, where, x, reduction);
  const { tag } = group.begin(where);
  if (reduction === "mean") noGrad(() => tidy(() => x.set(x.mul(1 / group.size))));
  const bytes = (await bytesOf(x)).slice();
  await group.together(where, engines(tag, bytes, reduction === "mean" ? "sum" : reduction));
  overwrite(x, bytes);
}

/** A rank's rows of the reduction: its part along axis 0. */
export async function reduceScatter(group: Group, where: string, x: Tensor, reduction: Reduction): Promise<Tensor> {
  const [rows, ...row] = x.shape as [number, ...number[]];
  const length = row.reduce((a, b) => a * b, 1);
  const parts = partsOf(rows, group.size).map(({ begin, end }) => ({ begin: begin * length, end: end * length }));
  const sum = await reducePart(group, group.begin(where), x, parts, reduction);
  const { begin, end } = partsOf(rows, group.size)[group.rank]!;
  const result = sum.reshape([end - begin, ...row]);
  sum.dispose();
  return result;
}

/** What all ranks contribute to this rank's part, added in the order of the ranks by the device of `x`: a new tensor. */
async function reducePart(
  group: Group,
  operation: Operation,
  x: Tensor,
  parts: readonly Part[],
  reduction: Reduction,
): Promise<Tensor> {
  const { begin, end } = parts[group.rank]!;
  const received = parts.map(() => roomLike(x, [end - begin]));
  try {
    const read = bytesOf(x);
    // Without a wait where none is needed: what leaves in the middle of a backward leaves now.
    const outgoing = read instanceof Uint8Array ? read : await read;
    const width = byteSize(x.dtype);
    overwrite(received[group.rank]!, cut(outgoing, { begin, end }, width));
    const contributions = others(group).flatMap((rank) => [
      ...(isEmpty(parts[rank]!) ? [] : [operation.send(rank, CONTRIBUTIONS, cut(outgoing, parts[rank]!, width))]),
      ...(begin === end ? [] : [receiveInto(operation, rank, received[rank]!)]),
    ]);
    await movedIn([...received, x], all(contributions));
    // Of one rank it would be what is disposed below.
    return keep(tidy(() => noGrad(() => combined(received, reduction).reshape([end - begin]))));
  } finally {
    for (const tensor of received) tensor.dispose();
  }
}

async function receiveInto(operation: Operation, from: number, target: Tensor): Promise<void> {
  const { bytes, done } = arriving(target);
  await operation.receive(from, CONTRIBUTIONS, bytes);
  done();
}

/** In the order of the ranks. PyTorch's DDP divides before it adds, too. */
function combined(contributions: readonly Tensor[], reduction: Reduction): Tensor {
  const scale = 1 / contributions.length;
  const parts = reduction === "mean" ? contributions.map((x) => x.mul(scale)) : contributions;
  return parts.reduce((sum, x) =>
    reduction === "min" ? sum.minimum(x) : reduction === "max" ? sum.maximum(x) : sum.add(x),
  );
}

const isEmpty = ({ begin, end }: Part) => begin === end;
const cut = (bytes: Uint8Array, { begin, end }: Part, width: number) => bytes.subarray(begin * width, end * width);

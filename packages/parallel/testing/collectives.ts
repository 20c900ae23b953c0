/** What every engine's ranks must hold after each collective: a program for `runJob`, and what it must tell. */
import { expect } from "vitest";
import { type JobOptions, runJob } from "./job";
import { runInMemory } from "./memory-job";

const ALL = `
const { rank, size } = communicator;
const { tensor } = core;
const list = async (x) => Array.from(await x.data());
const result = {};
await communicator.barrier();
result.broadcast = await list(await communicator.broadcast(tensor([rank, rank + 0.5]), size - 1));
result.json = await communicator.broadcast(rank === 1 % size ? { from: rank } : undefined, 1 % size);
result.any = [await communicator.any(rank === size - 1), await communicator.any(false)];
result.gather = await communicator.gather({ rank }) ?? null;
for (const reduction of ["sum", "mean", "min", "max"])
  result[reduction] = await list(await communicator.allReduce(tensor([rank, -rank, 1, 2 * rank, 5]), reduction));
result.integers = await list(await communicator.allReduce(tensor(Int32Array.of(2 ** 31 - 1, rank))));
result.half = await list(await communicator.allReduce(tensor([1 + rank, 0.5]).to("bf16"), "mean"));
result.empty = (await communicator.allReduce(tensor(new Float32Array(0)))).size;
result.scattered = await list(await communicator.reduceScatter(tensor([[1, 2], [3, 4], [5, 6], [7, rank]])));
result.scatteredMean = await list(await communicator.reduceScatter(tensor([[1, 2], [3, 4], [5, 6], [7, rank]]), "mean"));
result.gathered = await list(await communicator.allGather(tensor(new Float32Array(2 * rank).fill(rank), { shape: [rank, 2] })));
const other = tensor([0, 0]);
if (rank > 0) await communicator.send(tensor([rank, 7]), rank - 1);
if (rank < size - 1) await communicator.recv(other, rank + 1);
result.received = await list(other);
const half = await communicator.split(rank % 2);
result.half_ = [half.name, half.rank, half.size, ...(await list(await half.allReduce(tensor([rank]))))];
if (size === 4) {
  const grid = mesh(communicator, { data: 2, model: 2 });
  result.mesh = [grid.coordinates];
  for (const axis of ["data", "model"]) result.mesh.push(await list(await grid.axis(axis).allReduce(tensor([1 + rank]))));
}
// Several under way at once, larger than a piece.
const many = Array.from({ length: 5 }, (_, i) => core.full([700_000 * i + 3], rank + i));
await Promise.all(many.map((x) => communicator.allReduce(x)));
result.many = [];
for (const x of many) result.many.push((await x.max().item()) - (await x.neg().max().item()));
tell(result);
`;

/** @param options how the job is started */
export async function checkCollectives(size: number, options: JobOptions = {}): Promise<void> {
  const { told, code, error } = await runJob(size, ALL, options);
  expect([code, error]).toEqual([0, ""]);
  checkCollected(size, told);
}

/** Among ranks of this process. */
export const checkCollectivesInMemory = async (size: number): Promise<void> =>
  checkCollected(size, await runInMemory(size, ALL));

function checkCollected(size: number, told: readonly unknown[]): void {
  const ranks = Array.from({ length: size }, (_, rank) => rank);
  const sum = (of: (rank: number) => number) => ranks.map(of).reduce((a, b) => a + b, 0);
  const mean = (values: number[]) => values.map((value) => Math.fround(value));
  for (const rank of ranks) {
    const result = told[rank] as Record<string, unknown>;
    expect(result.broadcast).toEqual([size - 1, size - 0.5]);
    expect(result.json).toEqual({ from: 1 % size });
    expect(result.any).toEqual([true, false]);
    expect(result.gather).toEqual(rank === 0 ? ranks.map((each) => ({ rank: each })) : null);
    expect(result.sum).toEqual(
      [sum((r) => r), -sum((r) => r) + 0, size, sum((r) => 2 * r), 5 * size].map((x) => x || 0),
    );
    expect(result.min).toEqual([0, 1 - size || 0, 1, 0, 5].map((x) => x || 0));
    expect(result.max).toEqual([size - 1, 0, 1, 2 * (size - 1), 5]);
    expect((result.mean as number[])[3]).toBeCloseTo(mean([sum((r) => 2 * r) / size])[0]!, 6);
    expect(result.integers).toEqual([(size * (2 ** 31 - 1)) | 0, sum((r) => r)]);
    expect((result.half as number[])[1]).toBeCloseTo(0.5, 2);
    expect(result.empty).toBe(0);
    const rows = [
      [1, 2],
      [3, 4],
      [5, 6],
    ]
      .map((row) => row.map((x) => x * size))
      .concat([[7 * size, sum((r) => r)]]);
    const counts = ranks.map((r) => Math.floor(4 / size) + (r < 4 % size ? 1 : 0));
    const begin = counts.slice(0, rank).reduce((a, b) => a + b, 0);
    expect(result.scattered).toEqual(rows.slice(begin, begin + counts[rank]!).flat());
    const means = rows.slice(begin, begin + counts[rank]!).flat();
    (result.scatteredMean as number[]).forEach((x, i) => void expect(x).toBeCloseTo(means[i]! / size, 6));
    expect(result.scatteredMean).toHaveLength(means.length);
    expect(result.gathered).toEqual(ranks.flatMap((r) => new Array(2 * r).fill(r)));
    expect(result.received).toEqual(rank < size - 1 ? [rank + 1, 7] : [0, 0]);
    const mine = ranks.filter((r) => r % 2 === rank % 2);
    expect(result.half_).toEqual([
      `world/${rank % 2}`,
      mine.indexOf(rank),
      mine.length,
      mine.reduce((a, b) => a + b, 0),
    ]);
    if (size === 4) {
      const [row, column] = [Math.floor(rank / 2), rank % 2];
      expect(result.mesh).toEqual([[row, column], [2 * column + 4], [4 * row + 3]]);
    }
    expect(result.many).toEqual([0, 1, 2, 3, 4].map((i) => 2 * sum((r) => r + i)));
  }
}

/** Collectives among real processes: what every rank holds afterwards. */
import type { Communicator as CheckpointCommunicator } from "@opt/checkpoint";
import { tensor } from "@opt/core";
import { describe, expect, expectTypeOf, it } from "vitest";
import { connect } from "../engine/connect";
import "../index";
import { runJob } from "../testing/job";
import type { Communicator } from "./communicator";

const ALL = `
const { rank, size } = communicator;
const { tensor } = core;
const list = async (x) => Array.from(await x.data());
const result = {};
await communicator.barrier();
result.broadcast = await list(await communicator.broadcast(tensor([rank, rank + 0.5]), size - 1));
result.json = await communicator.broadcast(rank === 1 % size ? { from: rank } : undefined, 1 % size);
result.gather = await communicator.gather({ rank }) ?? null;
for (const reduction of ["sum", "mean", "min", "max"])
  result[reduction] = await list(await communicator.allReduce(tensor([rank, -rank, 1, 2 * rank, 5]), reduction));
result.integers = await list(await communicator.allReduce(tensor(Int32Array.of(2 ** 31 - 1, rank))));
result.half = await list(await communicator.allReduce(tensor([1 + rank, 0.5]).to("bf16"), "mean"));
result.empty = (await communicator.allReduce(tensor(new Float32Array(0)))).size;
result.scattered = await list(await communicator.reduceScatter(tensor([[1, 2], [3, 4], [5, 6], [7, rank]])));
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

describe.each([1, 2, 3, 4])("%d ranks", (size) => {
  it("hold what the collectives promise", async () => {
    const { told, code, error } = await runJob(size, ALL);
    expect([code, error]).toEqual([0, ""]);
    const ranks = Array.from({ length: size }, (_, rank) => rank);
    const sum = (of: (rank: number) => number) => ranks.map(of).reduce((a, b) => a + b, 0);
    const mean = (values: number[]) => values.map((value) => Math.fround(value));
    for (const rank of ranks) {
      const result = told[rank] as Record<string, unknown>;
      expect(result.broadcast).toEqual([size - 1, size - 0.5]);
      expect(result.json).toEqual({ from: 1 % size });
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
  });
});

it("is a communicator of saveCheckpoint", () => expectTypeOf<Communicator>().toExtend<CheckpointCommunicator>());

describe("refused", () => {
  it.each<[string, string, (communicator: Communicator) => Promise<unknown>]>([
    ["a number in place of a tensor", "BAD_ARGUMENT", (c) => c.allReduce(1 as never)],
    ["an unknown reduction", "BAD_ARGUMENT", (c) => c.allReduce(tensor([1]), "product" as never)],
    ["truth values", "BAD_DTYPE", (c) => c.allReduce(tensor([true]))],
    ["a mean of whole numbers", "BAD_DTYPE", (c) => c.allReduce(tensor(Int32Array.of(1)), "mean")],
    ["a root that is no rank", "BAD_ARGUMENT", (c) => c.broadcast(1, 1)],
    ["a message to itself", "BAD_ARGUMENT", (c) => c.send(tensor([1]), 0)],
    ["rows of a number", "BAD_SHAPE", (c) => c.allGather(tensor(1))],
    ["a color that is none", "BAD_ARGUMENT", (c) => c.split(-1)],
  ])("%s", async (_, code, call) => {
    await expect(call(await connect())).rejects.toMatchObject({ code });
  });

  it.each<[string, string, object]>([
    ["an unknown engine", "BAD_ARGUMENT", { engine: "smoke" }],
    ["an engine that did not start this process", "DEVICE_UNAVAILABLE", { engine: "local" }],
    ["an unknown option", "BAD_ARGUMENT", { engin: "local" }],
    ["no time at all", "BAD_ARGUMENT", { timeout: 0 }],
  ])("%s", async (_, code, options) => {
    await expect(connect(options)).rejects.toMatchObject({ code });
  });

  it("what comes after close", async () => {
    const communicator = await connect();
    await communicator.close();
    await expect(communicator.barrier()).rejects.toMatchObject({ code: "DISPOSED" });
    await (await connect()).barrier(); // one rank may begin again
  });
});

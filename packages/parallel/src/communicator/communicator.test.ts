/** Collectives among real processes: what every rank holds afterwards. */
import type { Communicator as CheckpointCommunicator } from "@opt/checkpoint";
import { tensor } from "@opt/core";
import { triesAll } from "@opt/testkit";
import fc from "fast-check";
import { describe, expect, expectTypeOf, it } from "vitest";
import { connect } from "../connect";
import "../index";
import { checkCollectives, checkCollectivesInMemory } from "../../testing/collectives";
import { memoryRanks } from "../../testing/memory-ranks";
import { mesh } from "../mesh/mesh";
import type { Communicator } from "./communicator";

// As text, 10 comes before 2.
it("more than ten ranks are in the order of their numbers", async () => {
  const ranks = Array.from({ length: 12 }, (_, rank) => rank);
  const told = await Promise.all(
    memoryRanks(12).map(async (communicator) => {
      const { rank } = communicator;
      const half = await communicator.split(rank % 2);
      const rows = async (group: Communicator) => Array.from(await (await group.allGather(tensor([[rank]]))).data());
      const gathered = [(await communicator.gather(rank)) ?? null, (await half.gather(rank)) ?? null];
      const grid = mesh(communicator, { data: 6, model: 2 });
      const column = await rows(grid.axis("data"));
      return [half.rank, half.group.members, ...gathered, await rows(communicator), await rows(half), column];
    }),
  );
  const expected = ranks.map((rank) => {
    const half = ranks.filter((other) => other % 2 === rank % 2);
    const gathered = [rank === 0 ? ranks : null, half[0] === rank ? half : null];
    return [half.indexOf(rank), half, ...gathered, ranks, half, half];
  });
  expect(told).toEqual(expected);
});

it("messages of groups never mix, whatever groups their ranks have split before", async () => {
  const size = 4;
  const color = fc.nat(2);
  /** Half of the ranks have split more often than the others. */
  const all = [0, 0, 0, 0] as [number, number, number, number];
  const deep = [
    { of: 0, colors: [0, 0, 1, 1] as typeof all, ranks: 1 },
    ...[1, 1, 1].map((of) => ({ of, colors: all, ranks: 1 })),
    { of: 0, colors: all, ranks: 1 },
    ...[1, 1, 1, 1].map((of) => ({ of, colors: all, ranks: 4 })),
  ];
  const split = fc.record({ of: fc.nat(3), colors: fc.tuple(color, color, color, color), ranks: fc.nat(15) });
  await fc.assert(
    fc.asyncProperty(fc.array(split, { minLength: 8, maxLength: 20 }), async (splits) => {
      const gathered = await Promise.all(
        memoryRanks(size).map(async (world) => {
          const { rank } = world;
          // A group splits if its first rank does.
          const groups: (Communicator | undefined)[] = [world];
          for (const { of, colors, ranks } of splits) {
            const group = groups[of % groups.length];
            const isSplit = group !== undefined && (ranks >> group.group.members[0]!) % 2 === 1;
            groups.push(isSplit ? await group.split(colors[rank]!) : undefined);
          }
          const begin = async (group: Communicator | undefined, i: number) =>
            group && [group.group.members, i, (await (await group.allGather(tensor([[i, rank]]))).data()).join()];
          // Some ranks begin with the last group.
          const order = groups.map((group, i) => [group, i] as const);
          return Promise.all((rank % 2 === 0 ? order : order.reverse()).map((each) => begin(...each)));
        }),
      );
      for (const [members, i, rows] of gathered.flat().filter((each) => each !== undefined))
        expect(rows).toBe((members as number[]).map((member) => [i, member]).join());
    }),
    { numRuns: 30, examples: [[deep]] },
  );
});

it.each([1, 2, 3, 4])("%d ranks of this process hold what the collectives promise", checkCollectivesInMemory);

it.each(triesAll ? [1, 2, 3, 4] : [4])("%d processes hold what the collectives promise", (size) =>
  checkCollectives(size),
);

it("is a communicator of saveCheckpoint", () => expectTypeOf<Communicator>().toExtend<CheckpointCommunicator>());

describe("rejected", () => {
  it.each<[string, string, (communicator: Communicator) => Promise<unknown>]>([
    ["a number in place of a tensor", "BAD_ARGUMENT", (c) => c.allReduce(1 as never)],
    ["an unknown reduction", "BAD_ARGUMENT", (c) => c.allReduce(tensor([1]), "product" as never)],
    ["truth values", "BAD_DTYPE", (c) => c.allReduce(tensor([true]))],
    ["a mean of whole numbers", "BAD_DTYPE", (c) => c.allReduce(tensor(Int32Array.of(1)), "mean")],
    ["a root that is no rank", "BAD_ARGUMENT", (c) => c.broadcast(1, 1)],
    ["a message to itself", "BAD_ARGUMENT", (c) => c.send(tensor([1]), 0)],
    ["rows of a number", "BAD_SHAPE", (c) => c.allGather(tensor(1))],
    ["what JSON makes null of", "BAD_ARGUMENT", (c) => c.gather([{ loss: Number.NaN }])],
    ["what JSON drops", "BAD_ARGUMENT", (c) => c.broadcast(new Map([[1, 2]]))],
    ["a root to gather at", "BAD_ARGUMENT", (c) => c.gather(1, 1 as never)],
    ["MPI's key of a split", "BAD_ARGUMENT", (c) => c.split(0, 1 as never)],
    ["an invalid color", "BAD_ARGUMENT", (c) => c.split(-1)],
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

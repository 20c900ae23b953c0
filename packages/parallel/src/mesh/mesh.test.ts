import { tensor } from "@opt/core";
import { describe, expect, it } from "vitest";
import { memoryRanks } from "../../testing/memory-ranks";
import { connect, mesh } from "../index";
import { neighboursOf } from "./neighbours";

it("a mesh of one rank", async () => {
  const grid = mesh(await connect(), { data: 1, model: 1 });
  expect([grid.axes, grid.shape, grid.coordinates]).toEqual([
    ["data", "model"],
    [1, 1],
    [0, 0],
  ]);
  expect(grid.axis("model").size).toBe(1);
  expect(grid.axis("model")).toBe(grid.axis("model"));
});

it("messages of several meshes never mix, in whatever order ranks begin", async () => {
  await Promise.all(
    memoryRanks(4).map(async (communicator) => {
      const { rank } = communicator;
      const shapes: readonly Record<string, number>[] = [{ data: 2, model: 2 }, { all: 4 }, { model: 2, data: 2 }];
      const grids = shapes.map((sizes) => mesh(communicator, sizes));
      const axes = [...grids.flatMap((grid) => grid.axes.map((name) => grid.axis(name))).entries()];
      const gather = async ([i, axis]: (typeof axes)[number]) => {
        const rows = await axis.allGather(tensor([[10 * i + rank]]));
        expect([...rows.dataSync()]).toEqual(axis.group.members.map((member) => 10 * i + member));
      };
      await Promise.all((rank % 2 === 0 ? axes : axes.toReversed()).map(gather));
    }),
  );
});

it("neighbours of each size divide the ranks, and copies have one of each group", () => {
  for (const communicator of memoryRanks(8))
    for (const size of [2, 4, 1, 8, 2]) {
      const { near, copies } = neighboursOf(communicator, size);
      const { rank } = communicator;
      const members = Array.from({ length: 8 }, (_, i) => i);
      const same = (of: (rank: number) => number) => members.filter((each) => of(each) === of(rank));
      expect(near.group.members).toEqual(same((each) => Math.floor(each / size)));
      expect(copies.group.members).toEqual(same((each) => each % size));
      expect(neighboursOf(communicator, size).near).toBe(near);
    }
});

describe("rejected", () => {
  it.each<[string, object]>([
    ["other numbers of ranks", { data: 2 }],
    ["no axes", {}],
    ["half a rank", { data: 0.5, model: 2 }],
    ["a list", [1] as never],
    ["nothing", null as never],
    ["a text", "data" as never],
  ])("%s", async (_, sizes) => {
    const communicator = await connect();
    expect(() => mesh(communicator, sizes as Record<string, number>)).toThrow(
      expect.objectContaining({ code: "BAD_ARGUMENT" }),
    );
  });

  it("an unknown axis", async () => {
    const grid = mesh(await connect(), { data: 1 });
    expect(() => grid.axis("model")).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
  });
});

import { describe, expect, it } from "vitest";
import { connect, mesh } from "../index";

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

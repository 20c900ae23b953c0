import { describe, expect, it } from "vitest";
import { communicatorOver, localCommunicators, singleProcess } from "./communicator";

describe("communicators", () => {
  it("of one process answer themselves", async () => {
    const { rank, size, barrier, gather, broadcast } = singleProcess();
    await barrier();
    expect([rank, size, await gather("a"), await broadcast("b")]).toEqual([0, 1, ["a"], "b"]);
  });

  it("gather to rank 0 in rank order and broadcast from it, however late a rank comes", async () => {
    const late = (rank: number) => new Promise((resolve) => setTimeout(resolve, 5 * (3 - rank)));
    const results = await Promise.all(
      localCommunicators(3).map(async ({ rank, gather, broadcast, barrier }) => {
        await late(rank);
        const all = await gather({ rank });
        await barrier();
        return [all, await broadcast(rank === 0 ? "from 0" : undefined)];
      }),
    );
    expect(results).toEqual([
      [[{ rank: 0 }, { rank: 1 }, { rank: 2 }], "from 0"],
      [undefined, "from 0"],
      [undefined, "from 0"],
    ]);
  });

  it("may run ahead: rounds do not mix", async () => {
    const [zero, one] = localCommunicators(2) as [ReturnType<typeof singleProcess>, ReturnType<typeof singleProcess>];
    const ahead = [one.gather(1), one.gather(2), one.broadcast<string>(undefined)];
    expect([await zero.gather(10), await zero.gather(20), await zero.broadcast("x")]).toEqual([[10, 1], [20, 2], "x"]);
    expect(await Promise.all(ahead)).toEqual([undefined, undefined, "x"]);
  });

  it.each([[["one"]], [undefined], [["one", "two", "three"]]])(
    "report an exchange that gives %j to two ranks",
    async (all) => {
      const { barrier, gather, broadcast } = communicatorOver(0, 2, async () => all as unknown[]);
      for (const call of [barrier(), gather(1), broadcast(1)])
        await expect(call).rejects.toMatchObject({ code: "BAD_ARGUMENT", where: "communicatorOver" });
    },
  );

  it("need ranks", () =>
    expect(() => localCommunicators(0)).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" })));
});

import { Worker } from "node:worker_threads";
import { describe, expect, it } from "vitest";
import { communicatorOver, localCommunicators, Rendezvous, singleProcess } from "./communicator";

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

  it("work between worker threads", async () => {
    // Each thread sends its contributions; this one is where they meet.
    const program = `
      const { parentPort, workerData: { rank } } = require("node:worker_threads");
      const exchange = (value) => new Promise((resolve) => {
        parentPort.once("message", resolve);
        parentPort.postMessage({ value });
      });
      exchange(rank * 10).then((all) => exchange(rank === 0 ? all : null)).then(([ofZero]) => parentPort.postMessage({ done: ofZero }));`;
    const point = new Rendezvous(3);
    const rankZero = communicatorOver(0, 3, (value) => point.exchange(0, value));
    const threads = [1, 2].map((rank) => {
      const worker = new Worker(program, { eval: true, workerData: { rank }, execArgv: [] });
      return new Promise((resolve) =>
        worker.on("message", async ({ value, done }) => {
          if (done === undefined) worker.postMessage(await point.exchange(rank, value));
          else resolve(done);
        }),
      );
    });
    const gathered = await rankZero.gather(0);
    expect(gathered).toEqual([0, 10, 20]);
    await rankZero.broadcast(gathered);
    expect(await Promise.all(threads)).toEqual([
      [0, 10, 20],
      [0, 10, 20],
    ]);
  });
});

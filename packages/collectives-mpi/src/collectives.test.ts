/** Every collective among real processes, through both libraries from one binary: what the local engine's ranks hold, too. */
import { triesAll } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { checkCollectives } from "../../parallel/testing/collectives";
import { jobOf, runJob } from "../../parallel/testing/job";
import { IMPORTS, launchers, shareOf } from "../testing/launchers";

const imports = `${IMPORTS}
import { allReduceByEngine } from "${new URL("../../parallel/src/communicator/reduce.ts", import.meta.url).pathname}";`;

describe.each(launchers)("$name", ({ name, missing, launcher }) => {
  it.skipIf(missing).each(triesAll ? [1, 2, 3, 4] : [name === "MPICH" ? 4 : 3])(
    `%d ranks hold what the collectives promise${missing ?? ""}`,
    (size) => checkCollectives(size, { imports, launcher }),
  );

  const tried = jobOf(
    3,
    {
      sums: `const { group, rank } = communicator;
        const result = {};
        for (const dtype of ["f32", "f64", "i32", "u8", "bf16"])
          for (const reduction of ["sum", "min", "max"]) {
            const x = core.tensor([rank + 1, 100, 2 - rank], { dtype });
            await allReduceByEngine(group, "allReduce", [x], reduction, { what: reduction, dtype });
            (result[reduction] ??= []).push(Array.from(await x.data()));
          }
        const half = (await communicator.split(rank % 2)).group;
        result.served = [group, half].map(({ members }) => typeof group.world.engine.allReduceOf(members, "f32"));
        const mean = core.tensor([rank]);
        await allReduceByEngine(group, "allReduce", [mean], "mean", { what: "mean" });
        result.mean = await mean.item();
        tell(result);`,
      now: `const { rank, size, group } = communicator;
        const { engine } = group.world;
        const [next, previous] = [(rank + 1) % size, (rank + size - 1) % size];
        const large = core.full([300_000], rank);
        const beside = communicator.allReduce(large);
        const now = (sent, awaited, timeout = 20_000) => {
          const bytes = new Uint8Array(awaited);
          const moves = [
            { kind: "send", rank: next, tag: 9, bytes: new Uint8Array(sent).fill(rank + 1) },
            { kind: "receive", rank: previous, tag: 9, bytes },
          ];
          engine.exchangeNow(moves.filter(({ bytes }) => bytes.length > 0), timeout);
          return [...new Set(bytes)];
        };
        const codes = [];
        const result = [now(10, 10), now(2_000_000, 2_000_000)];
        await beside;
        for (const sizes of [[10, 20], [0, 5, 50]]) try { now(...sizes); } catch ({ code, message }) { codes.push(code + message); }
        await communicator.barrier();
        tell([result, await large.max().item(), codes]);`,
    },
    { imports, launcher },
  );

  it.skipIf(missing)(`its own sums are those of the elements, where it has such${missing ?? ""}`, async () => {
    const of = (values: number[]) => new Array(5).fill(values);
    const each = { sum: of([6, 300, 3]), min: of([1, 100, 0]), max: of([3, 100, 2]) };
    each.sum[3] = [6, 300 - 256, 3];
    expect(await tried("sums")).toEqual(new Array(3).fill({ ...each, served: ["function", "undefined"], mean: 1 }));
  });

  it.skipIf(missing)(`a sum in the middle of a forward ends before the call returns${missing ?? ""}`, async () => {
    const told = await tried("now");
    for (const rank of [0, 1, 2]) {
      const previous = (rank + 2) % 3;
      expect(told[rank]).toEqual([
        [[previous + 1], [previous + 1]],
        3,
        [
          expect.stringMatching(`BAD_SHAPE.*rank ${previous} sent 10 bytes where this rank waits for 20`),
          expect.stringMatching(`MISSING.*waited 0.05 s for rank ${previous}, which did not come`),
        ],
      ]);
    }
  });
});

describe.each(launchers)("$name: ranks", (own) => {
  const { missing, launcher } = own;
  const tests: readonly [string, () => Promise<void>][] = [
    ["are one process and one thread, which keeps its traps and its heap", oneProcess],
    ["that differ are rejected, in its own sums too", differing],
  ];
  it.skipIf(missing).each(shareOf(own, tests))(`%s${missing ?? ""}`, (_, test) => test());

  async function oneProcess(): Promise<void> {
    const connect = `
    const { isMainThread, Worker } = await import("node:worker_threads");
    const communicator = await connect().catch(({ code, message }) => ({ code, message, close() {} }));`;
    const body = `
    if (!isMainThread) console.log("thread: " + communicator.code + communicator.message);
    else if (process.env.OPT_TEST_CHILD) console.log("child: " + communicator.size);
    else {
      const { spawnSync } = await import("node:child_process");
      const env = { ...process.env, OPT_TEST_CHILD: "1" };
      process.stdout.write(spawnSync(process.execPath, [process.argv[1]], { env }).stdout);
      await new Promise((resolve) => new Worker(process.argv[1]).on("exit", resolve));
      // A function that reads past the end of a memory of one page: (func (drop (i32.load (i32.const 65536)))).
      const bytes = [0,97,115,109,1,0,0,0,1,4,1,96,0,0,3,2,1,0,5,3,1,0,1,7,5,1,1,102,0,0,10,12,1,10,0,65,128,128,4,40,2,0,26,11];
      const { exports } = new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from(bytes)));
      try { exports.f(); } catch (error) { console.log("trap: " + error.constructor.name); }
      console.log("memory hooks: " + process.env.UCX_MEM_EVENTS);
    }`;
    const { out, error } = await runJob(2, body, { imports, connect, launcher });
    for (const line of [
      "child: 1",
      "thread: UNSUPPORTED[mpi] a rank is a process, got a worker thread",
      "trap: RuntimeError",
      "memory hooks: no",
    ])
      expect(out.split(line)).toHaveLength(3);
    expect(error).toBe("");
  }

  async function differing(): Promise<void> {
    const body = `
      const { group, rank } = communicator;
      const codeOf = (call) => call.then(() => "nothing", ({ code }) => code);
      tell([
        await codeOf(communicator.allReduce(core.ones([3], { dtype: rank ? "f64" : "f32" }))),
        await codeOf(communicator.broadcast(core.ones([3]), rank)),
        await codeOf(allReduceByEngine(group, "sync", [core.ones([3])], "sum", { what: "sync", more: ["turn " + rank] })),
        await codeOf(communicator.barrier()),
      ]);`;
    const { told, error } = await runJob(2, body, { imports, launcher });
    expect(error).toBe("");
    expect(told).toEqual(new Array(2).fill(["BAD_DTYPE", "BAD_STATE", "BAD_STATE", "nothing"]));
  }
});

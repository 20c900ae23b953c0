/** Who is a rank under opt-run: the process that it started, and neither its threads nor what it starts; and which cores it takes. */
import { availableParallelism } from "node:os";
import { expect, it, vi } from "vitest";
import { runJob } from "../../testing/job";

it.each(["before", "after"])("threads and children %s connect are no ranks", async (when) => {
  const attempt = `await connect().catch(({ code, message }) => ({ code, message, close() {} }))`;
  const start = `
    const { isMainThread, Worker } = await import("node:worker_threads");
    const { spawnSync } = await import("node:child_process");
    const isChild = process.env.OPT_TEST_CHILD !== undefined;
    const others = async () => {
      const env = { ...process.env, OPT_TEST_CHILD: "1" };
      process.stdout.write(spawnSync(process.execPath, [process.argv[1]], { env }).stdout);
      await new Promise((resolve) => new Worker(process.argv[1]).on("exit", resolve));
    };
    if (isMainThread && !isChild && ${when === "before"}) await others();
    const communicator = ${attempt};`;
  const body = `
    if (!isMainThread) console.log("thread: " + communicator.code + communicator.message);
    else if (isChild) console.log("child: " + communicator.size);
    else {
      if (${when === "after"}) await others();
      await communicator.barrier();
      console.log("rank: " + communicator.size);
    }`;
  const { out, error, code } = await runJob(2, body, { connect: start });
  expect([code, error]).toEqual([0, ""]);
  for (const line of ["child: 1\n", "thread: UNSUPPORTED[connect] a rank is a process, got a worker", "rank: 2\n"])
    expect(out.split(line), line).toHaveLength(3);
});

// Who divides threads divides cores, too.
it.each([
  [undefined, String(Math.max(1, Math.floor(availableParallelism() / 2))), 2],
  ["3", "3", 1],
])("OPT_NUM_THREADS=%s is %s in each of 2 ranks, which have %d lists of cores", async (given, threads, lists) => {
  vi.stubEnv("OPT_NUM_THREADS", given);
  const isLinux = process.platform === "linux";
  const body = `const { readFileSync } = await import("node:fs");
    const cores = ${isLinux} && /Cpus_allowed_list:.*/.exec(readFileSync("/proc/self/status", "utf8"))[0];
    tell([process.env.OPT_NUM_THREADS, cores]);`;
  const told = (await runJob(2, body)).told as [string, string][];
  expect(told.map(([each]) => each)).toEqual([threads, threads]);
  if (isLinux && availableParallelism() > 1) expect(new Set(told.map(([, cores]) => cores)).size).toBe(lists);
});

it("what opt-run starts within a rank are ranks of a job of their own", async () => {
  const body = `
    const { spawnSync } = await import("node:child_process");
    const isInner = process.env.OPT_TEST_INNER !== undefined;
    if (isInner) console.log("inner: " + communicator.rank + " of " + communicator.size);
    else if (communicator.rank === 0) {
      const cli = process.argv[1].replace(/program-[0-9]+/, "cli");
      const env = { ...process.env, OPT_TEST_INNER: "1" };
      process.stdout.write(spawnSync(process.execPath, [cli, "-n", "3", process.argv[1]], { env }).stdout);
    }
    await communicator.barrier();`;
  const { out, error } = await runJob(2, body);
  expect(error).toBe("");
  expect(out.match(/inner: \d of \d/g)?.sort()).toEqual(["inner: 0 of 3", "inner: 1 of 3", "inner: 2 of 3"]);
});

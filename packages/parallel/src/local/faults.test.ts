/** What a job does when something goes wrong in one of its ranks: it ends soon, and says why. */
import { existsSync, readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { runJob } from "../testing/job";

describe("a job ends", () => {
  it.each<[string, string, string | RegExp, string?]>([
    ["a rank throws", `if (rank === 1) throw new Error("no more")`, "rank 1 of 3 ended with exit code 1"],
    ["a rank is killed", `if (rank === 2) process.kill(process.pid, "SIGKILL")`, "rank 2 of 3 was killed by SIGKILL"],
    [
      "a rank is killed in a sum",
      `const x = core.ones([4_000_000]);
       if (rank === 1) setTimeout(() => process.kill(process.pid, "SIGKILL"), 20);
       for (;;) await communicator.allReduce(x, "mean");`,
      "rank 1 of 3 was killed by SIGKILL",
    ],
    ["a rank computes on and on", `if (rank === 0) process.exit(3); for (;;) {}`, "rank 0 of 3 ended with exit code 3"],
    ["a rank leaves early", `if (rank === 1) process.exit(0)`, "rank 1 has ended while this rank needs it"],
    [
      "ranks differ in sizes",
      `await communicator.allReduce(core.ones([rank === 1 ? 30 : 60]))`,
      /\[allReduce\] (in allReduce "sum" rank \d has "f32 \[\d0\]" where|rank \d sends another size than allReduce "sum" f32 \[\d0\])/,
    ],
    [
      "a rank does not come",
      `if (rank === 1) await sleep(1e5)`,
      /\[barrier\] rank \d of "world" waited 5 s for rank \d/,
      "{ timeout: 5000 }",
    ],
  ])("where %s", async (_, fault, message, options = "") => {
    const connect = `const communicator = await connect(${options}); const { rank } = communicator;`;
    const body = `${fault}\nawait communicator.barrier();`;
    const { code, error } = await runJob(3, body, { connect });
    expect(error).toMatch(message);
    expect(code).not.toBe(0);
  });

  it("where its launcher is killed", async () => {
    const body = `if (rank === 0) process.kill(process.ppid, "SIGKILL"); await communicator.barrier(); await sleep(1e5);`;
    const { error } = await runJob(2, body, {
      connect: "const communicator = await connect(); const { rank } = communicator;",
    });
    expect(error).toMatch(/the launcher of rank \d is gone/);
  });
});

describe("a job that ends well", () => {
  it.each([
    ["without close", "await communicator.barrier(); communicator.close = async () => {};"],
    [
      "with messages that nobody receives",
      `if (communicator.rank === 0) await communicator.send(core.ones([9_000_000]), 1);`,
    ],
  ])("%s", async (_, body) => {
    const { code, error } = await runJob(2, body);
    expect([code, error]).toEqual([0, ""]);
  });

  it("leaves no memory behind", async () => {
    const { told } = await runJob(2, "tell(process.ppid);");
    if (existsSync("/dev/shm"))
      expect(readdirSync("/dev/shm").filter((name) => name.startsWith(`opt-run-${told[0]}-`))).toEqual([]);
  });
});

it.each<[string, string[], string]>([
  ["no count", ["program.js"], "the first argument must be -n, got program.js"],
  ["no ranks at all", ["-n", "0", "program.js"], "-n must be a whole number, 1 to 256, got 0"],
  ["a number in another form", ["-n", "1e1", "program.js"], "-n must be a whole number, 1 to 256, got 1e1"],
  ["a program in the place of the count", ["-n", "program.js"], "-n must be a whole number, 1 to 256, got program.js"],
  ["no program", ["-n", "2"], "there is no program"],
  ["a program that is not there", ["-n", "2", "missing.js"], "there is no file missing.js"],
])("opt-run refuses %s", async (_, args, problem) => {
  const { spawnSync } = await import("node:child_process");
  const cli = new URL("cli.ts", import.meta.url).pathname;
  const node = ["--conditions=@opt/source", "--import", import.meta.resolve("tsx"), cli];
  const { status, stderr } = spawnSync(process.execPath, [...node, ...args], { encoding: "utf8" });
  expect([status, stderr]).toEqual([2, expect.stringMatching(`^opt-run: ${problem}\\.\n\nUsage: opt-run`)]);
});

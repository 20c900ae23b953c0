/** What a job does when something goes wrong in one of its ranks: it ends soon, and says why. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { bundled, optRun } from "@opt/testkit/bundled";
import { describe, expect, it } from "vitest";
import { type Launcher, localLauncher, runJob } from "../../testing/job";
import { tooMany } from "./launcher";
import { RankLines } from "./lines";

const imports = `import { DataParallel } from ${JSON.stringify(new URL("../data-parallel/data-parallel.ts", import.meta.url).href)};
import { loadCheckpoint, saveCheckpoint } from ${JSON.stringify(new URL("../../../checkpoint/src/index.ts", import.meta.url).href)};`;

const [cli] = await bundled(optRun);
const runCli = (...args: string[]) => spawnSync(process.execPath, [cli, ...args], { encoding: "utf8" });

/** What ranks do, what is said of it, and the exit code, a shell's. */
const FAULTS: readonly [fault: string, program: string, message: string | RegExp, code: number][] = [
  ["a rank throws", `if (rank === 1) throw new Error("no more")`, "rank 1 of 2 ended with exit code 1", 1],
  [
    "a rank is killed in a sum",
    `const x = core.ones([4_000_000]);
     if (rank === 1) setTimeout(() => process.kill(process.pid, "SIGKILL"), 20);
     for (;;) await communicator.allReduce(x, "mean");`,
    "rank 1 of 2 was killed by SIGKILL",
    137,
  ],
  [
    "a rank computes on and on",
    `if (rank === 0) process.exit(3); for (;;) {}`,
    "rank 0 of 2 ended with exit code 3",
    3,
  ],
  [
    "a rank leaves early",
    `if (rank === 1) process.exit(0)`,
    /\[barrier\] barrier cannot end: .*rank 1 has ended while this rank needs it.*All ranks call each collective as often/,
    1,
  ],
  [
    "a rank has fewer batches",
    `const w = core.parameter([1]);
     const parallel = new DataParallel({ forward: () => w.mul(2).sum(), namedParameters: () => [["w", w]] }, communicator);
     for (let step = 0; step < (rank === 1 ? 2 : 3); step++) {
       parallel.forward().backward();
       await parallel.sync();
       w.grad = null;
     }
     if (rank === 1) process.exit(0);`,
    /sync of step 3, bucket 1 of 1 cannot end: .*rank 1 has ended.*fewer batches call sync\(\) without a backward/,
    1,
  ],
  [
    "the launcher gets SIGTERM",
    `if (rank === 1) process.kill(process.ppid, "SIGTERM"); await communicator.barrier(); await sleep(1e5)`,
    /^$/,
    143,
  ],
];

it.each([
  [100, 1024, undefined],
  [256, 1024, undefined],
  [480, 1024, undefined],
  [
    481,
    1024,
    "481 ranks need 1026 open files in each process, the limit is 1024; 480 ranks fit, or raise it: ulimit -n 1026",
  ],
  [8, 64, "8 ranks need 80 open files in each process, the limit is 64; 0 ranks fit, or raise it: ulimit -n 80"],
])("%d ranks with a limit of %d open files", (size, limit, problem) => expect(tooMany(size, limit)).toBe(problem));

it("prints a syntax error once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "opt-syntax-"));
  const program = join(folder, "train.mjs");
  writeFileSync(program, "const const = 1;");
  const { status, stderr } = runCli("-n", "3", program);
  expect([status, stderr.split("SyntaxError").length - 1]).toEqual([1, 1]);
  rmSync(folder, { recursive: true });
});

it("gives each line the number of its rank, and a stack that ranks share once", async () => {
  const written: string[] = [];
  const lines = new RankLines((text) => written.push(text));
  const streams = [3, 0].map((rank) => {
    const stream = new PassThrough();
    lines.follow(stream, rank);
    return stream;
  });
  const texts = ["a\nb", "c\n", "\nError: of this rank\n    at one (x.js:1)\n", "    at two (x.js:2)\nend"];
  for (const stream of streams) {
    for (const text of texts) stream.write(text);
    stream.end();
    await once(stream, "end");
  }
  const before = ["a", "bc", "", "Error: of this rank"];
  expect(written).toEqual([
    ...[...before, "    at one (x.js:1)", "    at two (x.js:2)", "end"].map((line) => `[3] ${line}\n`),
    ...[...before, "    at the same lines as rank 3", "end"].map((line) => `[0] ${line}\n`),
  ]);
});

it("prefixes lines in pipes, whole, unless it is told not to", async () => {
  const launcher: Launcher = (size, program) => ({
    command: process.execPath,
    args: [cli, "-n", String(size), program],
  });
  const body = `process.on("SIGTERM", () => {}); // the one that fails first does not end the other
    process.stdout.write("one\\ntwo " + communicator.rank);
    await communicator.barrier();
    throw new Error("both");`;
  const { out, error, code } = await runJob(2, body, { launcher });
  expect([code, out.trim().split("\n").sort()]).toEqual([1, ["[0] one", "[0] two 0", "[1] one", "[1] two 1"]]);
  expect(error.match(/^\[\d\] Error: both$/gm)).toHaveLength(2);
  expect(error.match(/^\[\d\] {5}at .*program-\d+\.mjs:\d+:\d+\)?$/gm)).toHaveLength(1);
  expect(error.match(/^\[\d\] {5}at the same lines as rank \d$/gm)).toHaveLength(1);
});

it.concurrent("a job ends where a rank does not come", async () => {
  // A busy machine starts the second process seconds after the first.
  const connect = "const communicator = await connect({ timeout: 15_000 });";
  const body = "if (communicator.rank === 1) await sleep(1e5); await communicator.barrier();";
  const { code, error } = await runJob(2, body, { connect, imports });
  expect(error).toMatch(/\[barrier\] rank \d of "world" waited 15 s for rank \d/);
  expect(code).toBe(1);
});

// Side by side, for they mostly wait.
describe.concurrent("a job ends", () => {
  it.each(FAULTS)("where %s", async (_, fault, message, expected) => {
    const connect = "const communicator = await connect(); const { rank } = communicator;";
    const { code, error } = await runJob(2, `${fault}\nawait communicator.barrier();`, { connect, imports });
    expect(error).toMatch(message);
    expect(error).not.toMatch(/cannot end.*cannot end/); // each line says it once
    expect(code).toBe(expected);
  });

  it("where its launcher is killed", async () => {
    const body = `if (communicator.rank === 0) process.kill(process.ppid, "SIGKILL"); await communicator.barrier(); await sleep(1e5);`;
    expect((await runJob(2, body, { imports })).error).toMatch(/the launcher of rank \d is gone/);
  });
});

it.concurrent("begins again from the newest step after a rank died, as often as it may", async () => {
  const folder = mkdtempSync(join(tmpdir(), "opt-lives-"));
  // Each life is killed at another step; the last one ends.
  const body = `const { rank, size } = communicator;
    const path = ${JSON.stringify(folder)};
    const layout = { mesh: { shape: [size], axes: ["rank"] }, tensors: { "*": "replicate" } };
    const x = core.tensor([0]);
    const loaded = await loadCheckpoint(path).catch((error) => error.code === "MISSING" ? null : Promise.reject(error));
    if (loaded) x.set(loaded.tensors.x);
    const begin = loaded?.step ?? 0;
    for (let step = begin + 1; step <= 5; step++) {
      x.set(x.add(rank + step));
      await communicator.allReduce(x, "mean");
      await saveCheckpoint(path, { step, tensors: { x }, values: {} }, { communicator, layout, checkReplicas: true });
      if (rank === begin % size && step === begin + 2 && step < 5) process.kill(process.pid, "SIGKILL");
      await communicator.barrier();
    }
    tell([begin, x.tolist()]);`;
  try {
    const restarting =
      (times: number): Launcher =>
      (size, program) => {
        const { command, args } = localLauncher(size, program);
        return { command, args: [args[0]!, "--restarts", String(times), ...args.slice(1)] };
      };
    const { told, code, error } = await runJob(2, body, { imports, launcher: restarting(2) });
    expect([code, told]).toEqual([0, new Array(2).fill([4, [17.5]])]);
    expect(error).toMatch(
      /rank 0 of 2 was killed by SIGKILL; restart 1 of 2\n[\s\S]*rank 0 of 2 was killed by SIGKILL; restart 2 of 2/,
    );
    const dies = `process.kill(process.pid, "SIGKILL"); await sleep(1e5);`;
    const short = await runJob(1, dies, { imports, launcher: restarting(1) });
    expect([short.code, short.error]).toEqual([
      137,
      expect.stringMatching(/restart 1 of 1\n[\s\S]*SIGKILL; the job is over/),
    ]);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it.concurrent("says which rank ended before it connected", async () => {
  const connect = `if (process.env.OPT_RUN_RANK === "1") process.exit(0); const communicator = await connect();`;
  const { error } = await runJob(2, "", { connect, imports });
  expect(error).toMatch(/\[connect\] rank 1 has ended before it connected\. .*all ranks call connect\(\)/);
});

it.concurrent.each([
  ["without close", "await communicator.barrier(); communicator.close = async () => {};"],
  [
    "with messages that nobody receives",
    `if (communicator.rank === 0) await communicator.send(core.ones([9_000_000]), 1);`,
  ],
])("a job ends well %s, and leaves no memory behind", async (_, body) => {
  const { code, error, told } = await runJob(2, `tell(process.ppid); ${body}`, { imports });
  expect([code, error]).toEqual([0, ""]);
  if (existsSync("/dev/shm"))
    expect(readdirSync("/dev/shm").filter((name) => name.startsWith(`opt-run-${told[0]}-`))).toEqual([]);
});

it.runIf(process.platform === "linux")("a job ends well though a stranger connects and says nothing", async () => {
  // Rank 1 comes when another process has connected to rank 0, which ends by itself after a while.
  const stranger = `const { Socket } = require("node:net");
    const reach = () => new Socket().on("connect", () => process.stdout.write(".")).on("error", () => setTimeout(reach, 20)).connect({ path: JSON.parse(process.argv[1]) });
    reach();
    setTimeout(() => process.exit(), 40_000);`;
  const { code, error } = await runJob(2, "", {
    imports: `import { spawn } from "node:child_process"; import { NAME, RANK } from "${new URL("job.ts", import.meta.url).href}";`,
    connect: `if (process.env[RANK] === "1") {
        const path = "\\u0000opt-run-" + process.env[NAME] + "-0";
        const child = spawn(process.execPath, ["-e", ${JSON.stringify(stranger)}, JSON.stringify(path)], { stdio: ["ignore", "pipe", "ignore"], detached: true });
        await new Promise((resolve) => child.stdout.once("data", resolve));
        child.stdout.destroy();
        child.unref();
      }
      const communicator = await connect();`,
    patience: 30_000,
  });
  expect([code, error]).toEqual([0, ""]);
});

it.each<[string, string[], string]>([
  ["no count", ["program.js"], "the first argument must be -n or --hosts, got program.js"],
  ["a number in another form", ["-n", "1e1", "program.js"], "-n must be a whole number, 1 to 256, got 1e1"],
  ["ranks and hosts", ["-n", "2", "--hosts", "a:2", "x.js"], "-n goes without --hosts"],
  ["hosts in another form", ["--hosts", "a:0,b", "x.js"], "--hosts must be like a:4,b:4, got a:0,b"],
  ["a limit for one machine", ["-n", "2", "--min-ranks", "1", "x.js"], "--min-ranks goes with --hosts"],
  ["no program", ["-n", "2"], "there is no program"],
  ["a program that is not there", ["-n", "2", "missing.js"], "there is no file missing.js"],
])("opt-run rejects %s", (_, args, problem) => {
  const { status, stderr } = runCli(...args);
  expect([status, stderr]).toEqual([2, `opt-run: ${problem}. See opt-run --help.\n`]);
});

it("opt-run says how it is used, and its version", () => {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  expect(runCli("--version")).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: "" });
  for (const args of [[], ["--help"]])
    expect(runCli(...args)).toMatchObject({ status: 0, stdout: expect.stringMatching(/^Usage: opt-run/), stderr: "" });
});

it("without a launcher of MPI, --hosts says what to install", () => {
  const env = { ...process.env, PATH: mkdtempSync(join(tmpdir(), "opt-path-")) };
  const { status, stderr } = spawnSync(process.execPath, [cli, "--hosts", "a:2", cli], { encoding: "utf8", env });
  expect([status, stderr]).toEqual([2, expect.stringMatching(/no srun, mpirun or mpiexec.*apt install openmpi-bin/)]);
});

/** Ranks that do not end when they are asked to: the launcher ends them all, within its time, and leaves no process. */
import { describe, expect, it } from "vitest";
import { runJob } from "../../testing/job";

/** Much more than the launcher gives a rank, and much less than a rank that nobody ends. */
const PATIENCE = 50_000;

const EARS = `process.on("SIGTERM", () => {});`;
const NEVER = "await sleep(1e6);";

/** What two ranks do after both have connected, what is said of it, and the exit code. */
const STUBBORN: readonly [what: string, body: string, message: RegExp, code: number][] = [
  [
    "ignore SIGTERM when another has failed",
    `${EARS} await communicator.barrier(); if (rank === 0) process.exit(3); ${NEVER}`,
    /rank 0 of 2 ended with exit code 3/,
    3,
  ],
  [
    "ignore SIGTERM and compute on and on",
    `${EARS} await communicator.barrier(); if (rank === 1) process.kill(process.pid, "SIGKILL"); for (;;) {}`,
    /rank 1 of 2 was killed by SIGKILL/,
    137,
  ],
  [
    "ignore SIGTERM when the launcher gets it",
    `${EARS} await communicator.barrier(); if (rank === 1) process.kill(process.ppid, "SIGTERM"); ${NEVER}`,
    /^opt-run: rank 0, 1 killed: not over 2 s after SIGTERM; --grace gives more\n$/,
    143,
  ],
  [
    "ignore SIGTERM when the launcher gets it twice",
    `${EARS} await communicator.barrier();
     if (rank === 1) for (let i = 0; i < 2; i++) { process.kill(process.ppid, "SIGTERM"); await sleep(300); }
     ${NEVER}`,
    /^opt-run: rank 0, 1 killed: a second SIGTERM\n$/,
    143,
  ],
  [
    "are stopped",
    `await communicator.barrier();
     if (rank === 1) process.kill(process.pid, "SIGSTOP");
     await sleep(300);
     process.exit(4);`,
    /rank 0 of 2 ended with exit code 4/,
    4,
  ],
  [
    "wait in a collective without a limit of time",
    `${EARS} await communicator.barrier();
     if (rank === 1) { await sleep(200); process.exit(5); }
     await communicator.barrier().catch(() => {}); ${NEVER}`,
    /rank 1 of 2 ended with exit code 5/,
    5,
  ],
];

// Side by side, for they mostly wait.
describe.concurrent("ranks that", () => {
  it.each(STUBBORN)("%s are ended", async (_, body, message, expected) => {
    const connect = "const communicator = await connect(); const { rank } = communicator; tell(process.pid);";
    const { code, error, told } = await runJob(2, body, { connect, patience: PATIENCE });
    expect(error).toMatch(message);
    expect(code).toBe(expected);
    expect(told).toHaveLength(2);
    for (const pid of told as number[]) expect(() => process.kill(pid, 0)).toThrow(/ESRCH/);
  });

  it("end a little later than they are asked to may do so", async () => {
    const body = `process.on("SIGTERM", () => setTimeout(() => { tell("has saved"); process.exit(0); }, 400));
      await communicator.barrier();
      if (communicator.rank === 0) process.exit(3);
      ${NEVER}`;
    const { code, told } = await runJob(2, body, { patience: PATIENCE });
    expect([code, told[1]]).toEqual([3, "has saved"]);
  });

  it("write much before they fail are read to the end", async () => {
    const bytes = 3_000_000;
    const body = `const line = String(communicator.rank).repeat(99) + "\\n";
      await new Promise((resolve) => process.stderr.write(line.repeat(${bytes / 100}), resolve));
      await communicator.barrier();
      process.exit(6);`;
    const { code, error } = await runJob(2, body, { patience: PATIENCE });
    expect(code).toBe(6);
    for (const rank of ["0", "1"]) expect(error.split(rank).length).toBeGreaterThan(0.99 * bytes);
  });
});

/** What a job of MPI does when something goes wrong in one of its ranks: it ends soon, and says which. */
import { describe, expect, it } from "vitest";
import { runJob } from "../../parallel/testing/job";
import { IMPORTS, launchers, mpich, openMpi, shareOf } from "../testing/launchers";

const imports = IMPORTS;
/** Open MPI names the rank itself, Hydra the process alone. */
const killed = /process rank 2 .* exited on signal 9|rank 2 of 3, process \d+, is gone/;

const FAULTS: readonly [string, string, RegExp][] = [
  [
    "a rank throws",
    `if (rank === 1) throw new Error("no more")`,
    /Error: no more\n[\s\S]*mpi: rank 1 of 3 ended with exit code 1/,
  ],
  ["a rank is killed", `if (rank === 2) process.kill(process.pid, "SIGKILL")`, killed],
  [
    "a rank is killed in a sum",
    `const x = core.ones([4_000_000]);
     if (rank === 2) setTimeout(() => process.kill(process.pid, "SIGKILL"), 20);
     for (;;) await communicator.allReduce(x, "mean");`,
    killed,
  ],
  ["a rank computes on and on", `if (rank === 0) process.exit(3); for (;;) {}`, /rank 0 of 3 ended with exit code 3/],
  ["a rank leaves early", `if (rank === 1) process.exit(0)`, /rank 1 has ended while this rank needs it/],
  [
    "ranks differ in sizes",
    `await communicator.allReduce(core.ones([rank === 1 ? 30 : 60]))`,
    /\[allReduce\] (in allReduce "sum" rank \d has "f32 \[\d0\]" where|rank \d sends another size than allReduce "sum" f32 \[\d0\])/,
  ],
];

const ENDS = [
  ["without close", "await communicator.barrier(); communicator.close = async () => {};"],
  ["with ranks that end one after the other", "await sleep(300 * communicator.rank);"],
  [
    "with a small message that nobody receives",
    "await (communicator.rank ? communicator.send(core.ones([9]), 0) : sleep(500));",
  ],
] as const;

// Side by side, for they mostly wait.
describe.concurrent.each(launchers)("$name: a job ends", (own) => {
  const { missing, launcher } = own;
  it.skipIf(missing).each(shareOf(own, FAULTS))(`where %s${missing ?? ""}`, async (_, fault, message) => {
    const connect = "const communicator = await connect(); const { rank } = communicator;";
    const body = `${fault}\nawait communicator.barrier();`;
    const { code, error } = await runJob(3, body, { imports, connect, launcher });
    expect(error).toMatch(message);
    expect(code).not.toBe(0);
  });
});

describe.concurrent.each(launchers)("$name: a job ends well", (own) => {
  const { missing, launcher } = own;
  it.skipIf(missing).each(shareOf(own, ENDS))(`%s${missing ?? ""}`, async (_, body) => {
    const { code, error } = await runJob(2, body, { imports, launcher });
    expect([code, error]).toEqual([0, ""]);
  });
});

/** With the library of the other launcher each rank finds itself alone. */
it.skipIf(openMpi.missing ?? mpich.missing).concurrent(
  "a library of another launcher is rejected by name",
  async () => {
    const launcher: typeof mpich.launcher = (size, args) => ({
      ...mpich.launcher(size, args),
      env: { OPT_MPI_LIBRARY: "libmpi.so.40" },
    });
    const { code, error } = await runJob(2, "", { imports, launcher });
    expect(error).toMatch(/the launcher started 2 ranks, and libmpi\.so\.40 .* knows of 1/);
    expect(code).not.toBe(0);
  },
);

it.skipIf(openMpi.missing).concurrent("an invalid library is rejected by name", async () => {
  const launcher: typeof openMpi.launcher = (size, args) => ({
    ...openMpi.launcher(size, args),
    env: { OPT_MPI_LIBRARY: "libdl.so.2" },
  });
  const { error } = await runJob(1, "", { imports, launcher });
  expect(error).toMatch(/OPT_MPI_LIBRARY does not open: libdl\.so\.2 is no MPI library/);
});

const waiting = launchers.filter((own) => shareOf(own, ["differ"]).length > 0);

describe.each(waiting)("$name: a job ends", ({ missing, launcher }) => {
  it.skipIf(missing)(`where ranks differ in collectives${missing ?? ""}`, async () => {
    const connect = "const communicator = await connect({ timeout: 3000 });";
    const body = "if (communicator.rank === 1) await sleep(1e5); await communicator.barrier();";
    const { code, error } = await runJob(3, body, { imports, connect, launcher });
    expect(error).toMatch(/\[barrier\] rank \d of "world" waited 3 s for rank \d/);
    expect(code).not.toBe(0);
  });
});

it.skipIf(mpich.missing)(
  `a rank that never connects is waited for no longer than was said${mpich.missing ?? ""}`,
  async () => {
    const connect = `if (process.env.PMI_RANK === "1") process.exit(0);
    const communicator = await connect({ timeout: 2000 });`;
    const { code, error } = await runJob(2, "", { imports, connect, launcher: mpich.launcher });
    expect(error).toMatch(/MPI_Init of .* waited 2 s for the other ranks/);
    expect(code).not.toBe(0);
  },
);

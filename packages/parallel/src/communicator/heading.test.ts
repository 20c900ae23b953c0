/** What one rank means and another does not is rejected by name on every rank, before it goes on. */
import { expect, it } from "vitest";
import { runJob } from "../../testing/job";
import { runInMemory } from "../../testing/memory-job";
import { difference, type Heading, written } from "./heading";
import { allReduceByEngine } from "./reduce";

/** Each is tried by two ranks in one job; what was thrown is told. */
const FAULTS: readonly (readonly [fault: string, program: string, message: RegExp])[] = [
  [
    "dtypes of one width",
    `communicator.allReduce(rank ? core.tensor([1, 2]) : core.tensor(Int32Array.of(1, 2)))`,
    /BAD_DTYPE \[allReduce\] in allReduce "sum" rank \d has "(f|i)32 \[2\]" where this rank has "(i|f)32 \[2\]"/,
  ],
  ["shapes of one size", `communicator.allReduce(core.ones(rank ? [2, 3] : [3, 2]))`, /BAD_SHAPE .*"f32 \[2,3\]"/],
  ["sizes", `communicator.allReduce(core.ones([rank ? 30 : 60]))`, /BAD_SHAPE .*f32 \[30\]/],
  ["an empty tensor and one with elements", `communicator.allReduce(core.ones([rank]))`, /BAD_SHAPE .*f32 \[0\]/],
  [
    "reductions",
    `communicator.allReduce(core.ones([2]), rank ? "sum" : "mean")`,
    /BAD_STATE .*rank \d calls allReduce "(sum|mean)" where this rank calls allReduce "(sum|mean)"/,
  ],
  [
    "reductions of the engine",
    `allReduceByEngine(communicator.group, "sync", [core.ones([2])], "sum", { what: "sync", more: ["turn " + rank] })`,
    /BAD_STATE \[sync\] in sync rank \d has "turn \d" where this rank has "turn \d"/,
  ],
  [
    "roots",
    `communicator.broadcast(core.ones([2]), rank)`,
    /rank \d calls broadcast of a tensor from rank \d where this rank calls broadcast of a tensor from rank \d/,
  ],
  ["roots of values", `communicator.broadcast({ rank }, rank)`, /calls broadcast of a value from rank/],
  [
    "kinds",
    `rank ? communicator.barrier() : communicator.allGather(core.ones([2]))`,
    /rank \d calls (barrier|allGather) where this rank calls (barrier|allGather)/,
  ],
  ["rows of other shapes", `communicator.allGather(core.ones([2, 2 + rank]))`, /BAD_SHAPE .*\[\*,3\]/],
  ["scattered shapes", `communicator.reduceScatter(core.ones(rank ? [2, 6] : [6, 2]))`, /BAD_SHAPE .*\[2,6\]/],
  [
    "meshes",
    `(mesh(communicator, rank ? { data: 2, model: 1 } : { data: 1, model: 2 }), communicator.barrier())`,
    /in barrier rank \d has "mesh {"data":\d,"model":\d}"/,
  ],
  [
    "messages",
    `rank ? communicator.send(core.ones([4]), 0) : communicator.recv(core.ones([2, 2]), 1)`,
    /^nothing$|BAD_SHAPE \[recv\] in a message rank 1 has "f32 \[4\]" where this rank has "f32 \[2,2\]"/,
  ],
];

it("faults are named on every rank", async () => {
  const body = `const { rank } = communicator;
    const messages = [];
    const attempt = async (body) => messages.push(await body().then(() => "nothing", ({ code, message }) => code + " " + message));
    ${FAULTS.map(([, program]) => `await attempt(async () => ${program});`).join("\n")}
    const x = core.ones([3]);
    await communicator.allReduce(x);
    messages.push(x.tolist().join());
    tell(messages);`;
  for (const messages of (await runInMemory(2, body, { allReduceByEngine })) as string[][]) {
    for (const [i, [fault, , message]] of FAULTS.entries()) expect(messages[i], fault).toMatch(message);
    expect(messages.at(-1)).toBe("2,2,2");
  }
});

it.each<[string, Heading]>([
  ["a long line", { what: "sum", more: ["x".repeat(300)] }],
  ["many lines", { what: "sum", dtype: "f32", shape: "[2]", more: Array(50).fill("more") }],
  ["signs of many bytes", { what: "Ωω".repeat(100) }],
])("%s that differs at its end is told apart", (_, heading) => {
  const { what, more = [] } = heading;
  const other = { ...heading, what: more.length > 0 ? what : `${what}.`, more: [...more.slice(0, -1), "other"] };
  const [ours, theirs] = [written(heading), written(other)];
  expect(ours.length).toBe(theirs.length);
  expect(difference("sum", heading, ours, written({ ...heading }), 1)).toBeUndefined();
  expect(difference("sum", heading, ours, theirs, 1)?.code).toBe("BAD_STATE");
});

it("a size that comes from a rank whose heading goes to another one is named with the collective", async () => {
  const body = `const { rank } = communicator;
    const rejected = communicator.allReduce(core.ones([rank === 1 ? 30 : 60])).catch((error) => error);
    const error = await Promise.race([rejected, sleep(5000)]);
    tell([error.code, error.message]);
    process.exit(0);`;
  const { told } = await runJob(3, body);
  expect(told[0]).toEqual([
    "BAD_SHAPE",
    expect.stringMatching(/rank 1 sends another size than allReduce "sum" f32 \[60\] has/),
  ]);
  for (const rank of [1, 2])
    expect(told[rank]).toEqual(["BAD_SHAPE", expect.stringMatching(/in allReduce "sum" rank \d has "f32/)]);
});

it.each([
  [
    "sync of step 3, bucket 1 of 1",
    "gather",
    "rank 1 has no more batches, or calls gather alone: rank 1 calls gather where",
  ],
  [
    "gather",
    "sync of step 3, bucket 1 of 1",
    "this rank has no more batches, or calls gather alone: rank 1 calls sync of step 3",
  ],
  ["gathering of parameters of block", "barrier", "rank 1 has no more batches, or calls barrier alone"],
])("%s where another rank calls %s: says that batches are uneven", (ours, theirs, problem) => {
  const error = difference("here", { what: ours }, written({ what: ours }), written({ what: theirs }), 1)!;
  expect(error).toMatchObject({ code: "BAD_STATE", message: expect.stringContaining(problem) });
  expect(error.message).toContain("call sync() without a backward");
});

/** Ranks against one process that takes the same batches: every bit of parameters and state. */
import { parameter, type Tensor, tensor, viewAsComplex } from "@opt/core";
import { BatchNorm1d, Embedding, Linear, Sequential } from "@opt/nn";
import { triesAll } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { accumulation, checkAccumulation } from "../../testing/accumulation";
import { checkTraining, checkTrainingInMemory } from "../../testing/check-training";
import { runInMemory } from "../../testing/memory-job";
import type { Run } from "../../testing/training";
import { connect } from "../connect";
import "../index";
import { DataParallel } from "./data-parallel";

const IMPORTS = `import { trainOnRanks } from "${new URL("../../testing/training.ts", import.meta.url).href}";`;

const RUNS: readonly Run[] = [
  { algorithm: "NAdam", device: "cpu", steps: 10 },
  { algorithm: "AMSGrad", device: "wasm", steps: 6, options: { bucketBytes: 1 } },
  { algorithm: "SGD", device: "wasm", steps: 5 },
  { algorithm: "AdamW", device: "js", steps: 10 },
  { algorithm: "NAdam", device: "wasm", steps: 6, options: { bucketBytes: 150 }, accumulate: 3 },
  { algorithm: "AMSGrad", device: "cpu", steps: 10 },
  { algorithm: "AdamW", device: "cpu", steps: 6, options: { bucketBytes: 400, reduction: "engine" } },
];

it.each(triesAll ? [2, 3, 4] : [3])("%d ranks have the bits of one process", (ranks) =>
  checkTraining(ranks, RUNS, { imports: IMPORTS }),
);

it.each([
  [2, {}],
  [3, { accumulate: 3 }],
  [3, { options: { bucketBytes: 1 } }],
  [3, { options: { reduction: "engine" } }],
  [3, { options: { bucketBytes: 150 }, compiled: true }],
  [5, { algorithm: "SGD", clip: { norm: 0.5 } }],
] as [number, Partial<Run>][])("%d ranks of this process have the bits of one: %j", (ranks, run) =>
  checkTrainingInMemory(ranks, { algorithm: "AdamW", device: "js", steps: 4, ...run }),
);

type Fault = readonly [fault: string, program: string, message: RegExp];

/** Each is tried by two ranks in one job; what was thrown is told. `averaged(w)` averages the gradients of one parameter. */
const FAULTS: readonly Fault[] = [
  [
    "weights that differ",
    `const model = new Linear(2, 2, { generator: new core.Generator(rank) });
     await new DataParallel(model, communicator).ready;`,
    /\[DataParallel\] all ranks must agree, got "weight f32 \[2,2\] values \w+" on rank 0 and "weight f32 .*" on rank 1/,
  ],
  [
    "another order of parameters",
    `const [a, b] = [core.parameter([1]), core.parameter([2, 3])];
     const model = { forward() {}, namedParameters: () => (rank ? [["b", b], ["a", a]] : [["a", a], ["b", b]]) };
     await new DataParallel(model, communicator).sync();`,
    /got "a f32 \[1\] values \w+" on rank 0 and "b f32 \[2\] values \w+" on rank 1/,
  ],
  [
    "one parameter more",
    `const list = Array.from({ length: 1 + rank }, (_, i) => [String(i), core.parameter([1])]);
     await new DataParallel({ forward() {}, namedParameters: () => list }, communicator).ready;`,
    /got nothing on rank 0 and "1 f32 \[1\] values \w+" on rank 1/,
  ],
  ...["parallel.forward().backward()", "parallel.noSync(() => parallel.forward().backward())"].map(
    (second): Fault => [
      `a second backward before one sync: ${second}`,
      `const parallel = averaged(core.parameter([1]));
       parallel.forward().backward();
       try { ${second}; } finally { await parallel.sync(); }`,
      /backward reached w a second time before sync\(\)/,
    ],
  ),
  ...(
    [
      ["a learning rate that is another in one step", "rank && step === 1 ? 0.2 : 0.1", "await parallel.sync()"],
      ["a step more", "rank && step === 1 ? 0 : 0.1", "await parallel.sync()"],
      ["a sync that is skipped", "0.1", "if (!rank || step !== 1) await parallel.sync()"],
    ] as const
  ).map(
    ([fault, lr, sync]): Fault => [
      fault,
      `const w = core.parameter([1, 2]);
       const parallel = averaged(w, () => w.mul(w).sum());
       for (let step = 0; step < 5; step++) {
         const backward = () => parallel.forward().backward();
         if (rank && step === 1) parallel.noSync(backward); else backward();
         ${sync};
         core.noGrad(() => w.set(w.sub(w.grad.mul(${lr}))));
         w.grad = null;
       }`,
      /in sync of step 3, bucket 1 of 1 rank \d has "weights \w+" where this rank has "weights \w+"\. Between sync/,
    ],
  ),
  [
    "a sync before the last one has ended",
    `const parallel = averaged(core.parameter([1]));
     parallel.forward().backward();
     const first = parallel.sync();
     try { await parallel.sync(); } finally { await first; }`,
    /sync\(\) came while another one is under way/,
  ],
  ...["core.clipGradNorm([w], 1e-6)", "w.grad = null", "w.grad = w.grad.mul(0)"].map(
    (change): Fault => [
      `${change} before sync`,
      `const w = core.parameter([1]);
       const parallel = averaged(w);
       parallel.forward().backward();
       try { ${change}; } finally { await parallel.sync(); }`,
      /was changed between backward and sync\(\)/,
    ],
  ),
  [
    "another divisor",
    `const parallel = averaged(core.parameter([1]));
     parallel.divisor = 3 + rank;
     parallel.forward().backward();
     await parallel.sync();`,
    /in sync of step 1, bucket 1 of 1 rank \d has "divisor \d" where this rank has "divisor \d"/,
  ],
  [
    "two of one model",
    `const w = core.parameter([1]);
     const first = averaged(w);
     await first.ready;
     first.dispose();
     await averaged(w).ready;
     averaged(w);`,
    /another DataParallel averages the gradients of w/,
  ],
  [
    "row-sparse gradients",
    `const model = new Embedding(5, 2, { sparse: true, generator: new core.Generator(1) });
     const parallel = new DataParallel(model, communicator);
     await parallel.ready;
     parallel.forward(core.tensor(Int32Array.of(1, 3))).sum().backward();`,
    /the gradient of weight is row-sparse/,
  ],
  ...(
    [
      ["replaced", 0, "model.to('bf16')"],
      ["unfrozen", 0, "model.bias.requiresGrad = true"],
      ["replaced", 3, "model.to('bf16')"],
      ["unfrozen", 3, "model.unfreeze()"],
    ] as const
  ).map(
    ([how, steps, change]): Fault => [
      `a parameter that was ${how} after ${steps} steps`,
      `const model = new Linear(2, 2, { generator: new core.Generator(1) });
       model.bias.requiresGrad = false;
       const parallel = new DataParallel(model, communicator);
       const step = async () => {
         parallel.forward(core.ones([1, 2]).to(model.weight.dtype)).sum().backward();
         await parallel.sync();
         for (const x of model.parameters()) x.grad = null;
       };
       for (let i = 0; i < ${steps}; i++) await step();
       ${change};
       await step();`,
      /\[DataParallel\] (weight|bias) was replaced, added or unfrozen since, and is not averaged/,
    ],
  ),
  ...["js", "wasm", "cpu"].map(
    (device): Fault => [
      `another learning rate on ${device}`,
      `const { device } = core.zeros([1]);
       await core.init("${device}");
       try {
         const model = new Linear(3, 2, { generator: new core.Generator(1) });
         const parallel = new DataParallel(model, communicator);
         for (let step = 0; step < 2; step++) {
           parallel.forward(core.ones([1, 3])).sum().backward();
           await parallel.sync();
           for (const w of model.parameters()) {
             core.noGrad(() => w.set(w.sub(w.grad.mul(0.1 + rank))));
             w.grad = null;
           }
         }
       } finally {
         await core.init(device.name);
       }`,
      /in sync of step 2, bucket 1 of 1 rank \d has "weights \w+" where this rank has "weights \w+"/,
    ],
  ),
  [
    "buffers that differ",
    `const model = new BatchNorm1d(2);
     model.running_mean.set([0, rank]);
     await new DataParallel(model, communicator).ready;`,
    /got "running_mean f32 \[2\] values \w+" on rank 0 and "running_mean f32 .*" on rank 1/,
  ],
  [
    "another choice for buffers",
    `await new DataParallel(new BatchNorm1d(2), communicator, { broadcastBuffers: rank === 0 }).ready;`,
    /broadcastBuffers true" on rank 0 and ".*broadcastBuffers false" on rank 1/,
  ],
];

const BODIES = {
  faults: `const { rank } = communicator;
      const averaged = (w, forward = () => w.mul(2).sum()) =>
        new DataParallel({ forward, namedParameters: () => [["w", w]] }, communicator);
      const messages = [];
      const attempt = async (body) => messages.push(await body().then(() => "nothing", (error) => error.message));
      ${FAULTS.map(([, program]) => `await attempt(async () => { ${program} });`).join("\n")}
      tell(messages);`,
  differing: `const { rank } = communicator;
      const w = core.parameter([1, 2]);
      const parallel = new DataParallel({ forward: () => w.mul(w).sum(), namedParameters: () => [["w", w]] }, communicator);
      await parallel.ready;
      const change = (by) => core.noGrad(() => w.set(w.add(by)));
      for (let step = 0; step < 4; step++) {
        if (rank === 0) { change(5); parallel.forward(); change(-5); }
        parallel.noSync(() => parallel.forward().backward());
        w.grad = null;
        change(rank);
        parallel.forward().backward();
        await parallel.sync();
        change(-rank);
        w.grad = null;
      }
      tell(w.tolist());`,
  compiled: `const { rank } = communicator;
      const train = async (isCompiled) => {
        const model = new Linear(3, 2, { generator: new core.Generator(1) });
        const parallel = new DataParallel(model, communicator, { bucketBytes: 1 });
        const compiled = (f) => isCompiled ? core.compile(f, { check: "never" }) : f;
        const before = compiled((x) => { parallel.forward(x).pow(2).sum().backward(); });
        const after = compiled(() => {
          for (const w of model.parameters()) {
            core.noGrad(() => w.set(w.sub(w.grad.mul(0.01))));
            w.grad = null;
          }
        });
        for (let step = 0; step < 6; step++) {
          before(core.tensor([[step, rank, 1]]));
          await parallel.sync();
          after();
        }
        parallel.dispose();
        return model.parameters().map((w) => w.tolist());
      };
      tell([await train(false), await train(true)]);`,
  accumulating: accumulation("new DataParallel(net, communicator)"),
};
const tried = (name: keyof typeof BODIES) =>
  runInMemory(2, BODIES[name], { DataParallel, BatchNorm1d, Embedding, Linear, Sequential });

it("faults are named on every rank", async () => {
  for (const messages of (await tried("faults")) as string[][])
    for (const [i, [fault, , message]] of FAULTS.entries()) expect(messages[i], fault).toMatch(message);
});

it("weights may differ while a rank looks at others, and where it climbs by its own gradient", async () => {
  expect(await tried("differing")).toEqual(new Array(2).fill([1, 2]));
});

it("two compiled functions, before and after sync(), have the bits of an eager step", async () => {
  const [[eager, compiled], other] = (await tried("compiled")) as [[unknown, unknown], unknown[]];
  expect(compiled).toEqual(eager);
  expect(other).toEqual([eager, compiled]);
});

it("gradients add, by a second backward and sync, and in an async noSync to its end", async () =>
  checkAccumulation(await tried("accumulating")));

describe("rejected", () => {
  const model = new Linear(2, 1);
  const w = parameter([1]);
  const complex = parameter(viewAsComplex(tensor([[1, 2]])).clone());
  const named = (...tensors: Tensor[]) => ({
    forward() {},
    namedParameters: () => tensors.map((each, i): [string, Tensor] => [String(i), each]),
  });
  const made = async (of: unknown = model, options = {}) => new DataParallel(of as Linear, await connect(), options);
  it.each<[string, string, () => Promise<unknown>]>([
    ["no model", "BAD_ARGUMENT", () => made({})],
    ["no parameters", "BAD_ARGUMENT", () => made(named())],
    ["no communicator", "BAD_ARGUMENT", async () => new DataParallel(model, {} as never)],
    ["a tensor under two names", "DUPLICATE", () => made(named(w, w))],
    ["complex parameters", "UNSUPPORTED", () => made(named(complex))],
    ["an unknown option", "BAD_ARGUMENT", () => made(model, { bucket: 1 })],
    ["empty buckets", "BAD_ARGUMENT", () => made(model, { bucketBytes: 0 })],
    ["an unknown reduction", "BAD_ARGUMENT", () => made(model, { reduction: "fast" })],
    ["no function", "BAD_ARGUMENT", async () => (await made()).noSync(1 as never)],
  ])("%s", async (_, code, call) => {
    await expect(call()).rejects.toMatchObject({ code });
  });
});

it("one rank leaves gradients as they are", async () => {
  const w = parameter([3]);
  const parallel = new DataParallel(
    { forward: () => w.mul(2).sum(), namedParameters: () => [["w", w]] as [string, typeof w][] },
    await connect(),
  );
  for (let i = 0; i < 2; i++) parallel.forward().backward();
  await parallel.sync();
  expect(w.grad!.tolist()).toEqual([4]);
});

/** Divided layers beside whole ones, in real processes: outputs, gradients, and what is rejected. */
import { Generator, tensor } from "@opt/core";
import { Embedding, Linear, type Module, Sequential } from "@opt/nn";
import { triesAll } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { runJob } from "../../testing/job";
import { Communicator } from "../communicator/communicator";
import { Group } from "../communicator/group";
import type { Engine } from "../engine/engine";
import { ColumnParallelLinear, connect, layoutOf, mesh, ParallelEmbedding, RowParallelLinear } from "../index";

const IMPORTS = `import { ColumnParallelLinear, ParallelEmbedding, RowParallelLinear } from "${new URL("layers.ts", import.meta.url).href}";
import { Embedding, Linear } from "${new URL("../../../nn/src/index.ts", import.meta.url).href}";
import "${new URL("../../../kernels-cpu/src/index.ts", import.meta.url).href}";
import "${new URL("../../../kernels-wasm/src/index.ts", import.meta.url).href}";`;

/** Each device: what the divided layers give, beside the whole ones. */
const PROGRAM = `
const { rank, size } = communicator;
const { Generator, tensor } = core;
const drawn = () => ({ generator: new Generator(3) });
const part = (n) => [Math.floor(n / size) * rank + Math.min(rank, n % size), Math.floor(n / size) * (rank + 1) + Math.min(rank + 1, n % size)];
const equal = (a, b) => Buffer.compare(a.bytesSync(), b.bytesSync()) === 0;
const farthest = (a, b) => { const [x, y] = [a.dataSync(), b.dataSync()]; return x.reduce((most, value, i) => Math.max(most, Math.abs(value - y[i])), 0); };
const results = [];
for (const device of ["js", "cpu", "wasm"]) {
  await core.init(device);
  const result = {};
  const input = () => core.parameter(core.randn([3, 7], drawn()));
  const upstream = core.randn([3, 10], drawn());
  const rows = (x, n, axis) => x.slice(...part(n), axis);
  {
    const [whole, divided] = [new Linear(7, 10, drawn()), new ColumnParallelLinear(7, 10, communicator, { ...drawn(), gatherOutput: true })];
    const [x, z] = [input(), input()];
    const [y, w] = [whole.forward(x), divided.forward(z)];
    y.mul(upstream).sum().backward();
    w.mul(upstream).sum().backward();
    result.column = [equal(y, w), equal(rows(whole.weight.grad, 10, 0), divided.weight.grad)];
    // How a device sums few columns is its own affair.
    result.columnGradients = [farthest(x.grad, z.grad), farthest(rows(whole.bias.grad, 10, 0), divided.bias.grad)];
  }
  for (const inputIsParallel of [true, false]) {
    const [whole, divided] = [new Linear(7, 10, drawn()), new RowParallelLinear(7, 10, communicator, { ...drawn(), inputIsParallel })];
    const [x, z] = [input(), inputIsParallel ? core.parameter(rows(input().detach(), 7, 1)) : input()];
    const [y, w] = [whole.forward(x), divided.forward(z)];
    y.mul(upstream).sum().backward();
    w.mul(upstream).sum().backward();
    const inputGradient = inputIsParallel ? rows(x.grad, 7, 1) : x.grad;
    result["row" + inputIsParallel] = [farthest(y, w), farthest(rows(whole.weight.grad, 7, 1), divided.weight.grad), farthest(whole.bias.grad, divided.bias.grad), farthest(inputGradient, z.grad)];
  }
  {
    const [whole, divided] = [new Embedding(11, 4, drawn()), new ParallelEmbedding(11, 4, communicator, drawn())];
    const at = tensor([[0, 10, 5], [5, 3, 7]], { dtype: "i32" });
    const [y, w] = [whole.forward(at), divided.forward(at)];
    y.mul(y).sum().backward();
    w.mul(w).sum().backward();
    result.embedding = [equal(y, w), equal(rows(whole.weight.grad, 11, 0), divided.weight.grad)];
  }
  results.push(result);
}
tell(results);`;

describe.each(triesAll ? [2, 3] : [3])("%d ranks", (size) => {
  it("compute what whole layers do", async () => {
    const { told, error, code } = await runJob(size, PROGRAM, { imports: IMPORTS });
    expect([code, error]).toEqual([0, ""]);
    for (const results of told as Record<string, (boolean | number)[]>[][])
      for (const { column, columnGradients, rowtrue, rowfalse, embedding } of results) {
        expect(column).toEqual([true, true]);
        expect(embedding).toEqual([true, true]);
        for (const distances of [columnGradients!, rowtrue!, rowfalse!])
          expect(Math.max(...(distances as number[])), String(distances)).toBeLessThan(1e-6);
      }
  });
});

it("layers of other seeds and other inputs are named on every rank", async () => {
  const faults: [string, RegExp][] = [
    [
      `new RowParallelLinear(4, 2, communicator, { generator: new Generator(rank) }).forward(x)`,
      /"weights of RowParallel/,
    ],
    [
      `new ColumnParallelLinear(4, 2, communicator, { generator: new Generator(rank), gatherOutput: true }).forward(x)`,
      /"weights of ColumnParallelLinear \w+" where this rank has "weights of/,
    ],
    [`column.forward(core.ones([1, 4]).mul(rank + 1))`, /"input of ColumnParallelLinear f32 \[1,4\] \w+"/],
    [`column.forward(core.ones([1 + rank, 4]))`, /BAD_SHAPE .*gathering of ColumnParallelLinear .*"f32 \[1,\*\]/],
    [`new ParallelEmbedding(8, 2, communicator, seed()).forward(tensor([[rank]], { dtype: "i32" }))`, /"indices of/],
    [
      `new RowParallelLinear(4, 2, communicator, seed()).forward(core.ones([1, 2], { dtype: rank ? "f32" : "f64" }))`,
      /BAD_DTYPE/,
    ],
  ];
  const body = `const { rank } = communicator;
    const { Generator, tensor } = core;
    const x = core.ones([1, 2]);
    const seed = () => ({ generator: new Generator(1) });
    const column = new ColumnParallelLinear(4, 2, communicator, { ...seed(), gatherOutput: true });
    const messages = [];
    const attempt = (body) => { try { body(); messages.push("nothing"); } catch ({ code, message }) { messages.push(code + " " + message); } };
    ${faults.map(([call]) => `attempt(() => ${call.replace("forward(x)", call.includes("Column") ? "forward(core.ones([1, 4]))" : "forward(x)")});`).join("\n")}
    // Weights that were loaded may have been drawn from any seed.
    const loaded = new ColumnParallelLinear(4, 2, communicator, { generator: new Generator(rank), gatherOutput: true });
    loaded.loadStateDict(column.stateDict());
    attempt(() => loaded.forward(core.ones([1, 4])));
    tell(messages);`;
  const { told, error } = await runJob(2, body, { imports: IMPORTS });
  expect(error).toBe("");
  for (const messages of told as string[][]) {
    for (const [i, [call, message]] of faults.entries()) expect(messages[i], call).toMatch(message);
    expect(messages.at(-1)).toBe("nothing");
  }
});

it("a layout knows which axis divides what", async () => {
  const grid = mesh(await connect(), { data: 1, model: 1 });
  const model = grid.axis("model");
  const net = new Sequential(
    new ColumnParallelLinear(4, 6, model),
    new RowParallelLinear(6, 2, model, { bias: false }),
  );
  expect(layoutOf(net, grid)).toEqual({
    mesh: { shape: [1, 1], axes: ["data", "model"] },
    tensors: { "0.weight": ["model", null], "0.bias": ["model"], "1.weight": [null, "model"], "*": "replicate" },
  });
});

/** Two ranks over an engine that can only promise. */
function promising(): Communicator {
  const later = async () => {};
  const engine: Engine = { name: "later", rank: 0, size: 2, send: later, receive: later, close: later };
  const world = { engine, timeout: 1000, nextGroup: 256, nextMeshGroup: 1, isClosed: false };
  return new Communicator(new Group(world, "world", [0, 1], 0));
}

describe("rejected", () => {
  const x = tensor([[1, 2, 3]]);
  it.each<[string, string, (communicator: Communicator) => unknown]>([
    ["more ranks than features", "BAD_ARGUMENT", () => new ColumnParallelLinear(3, 1, promising())],
    ["more ranks than rows", "BAD_ARGUMENT", () => new ParallelEmbedding(1, 4, promising())],
    ["no communicator", "BAD_ARGUMENT", () => new RowParallelLinear(3, 1, {} as never)],
    ["an unknown option", "BAD_ARGUMENT", (c) => new ColumnParallelLinear(3, 1, c, { gather: true } as never)],
    ["inputs of another width", "BAD_SHAPE", (c) => new ColumnParallelLinear(4, 1, c).forward(x)],
    [
      "inputs of another width that are cut",
      "BAD_SHAPE",
      (c) => new RowParallelLinear(4, 1, c, { inputIsParallel: false }).forward(x),
    ],
    [
      "an engine that cannot wait",
      "UNSUPPORTED",
      () => new ColumnParallelLinear(3, 2, promising(), { gatherOutput: true }).forward(x),
    ],
    ["a layer of no axis", "BAD_ARGUMENT", (c) => layoutOf(new ColumnParallelLinear(3, 1, c), mesh(c, { model: 1 }))],
    ["a layout of no module", "BAD_ARGUMENT", (c) => layoutOf({} as never, mesh(c, { model: 1 }))],
  ])("%s", async (_, code, call) => {
    const communicator = await connect();
    expect(() => call(communicator)).toThrow(expect.objectContaining({ code }));
  });
});

it("divided layers have the dtype, the device and the bias that they are given, and begin as whole ones do", async () => {
  const [communicator, { device }] = [await connect(), tensor([])];
  const given = () => ({ dtype: "f64", device, generator: new Generator(3) }) as const;
  const pairs: [Module, Module][] = [
    [
      new ColumnParallelLinear(3, 2, communicator, { ...given(), bias: false }),
      new Linear(3, 2, { ...given(), bias: false }),
    ],
    [
      new RowParallelLinear(3, 2, communicator, { ...given(), bias: false }),
      new Linear(3, 2, { ...given(), bias: false }),
    ],
    [new ParallelEmbedding(3, 2, communicator, given()), new Embedding(3, 2, given())],
  ];
  for (const [divided, whole] of pairs) {
    const [weight, ...others] = divided.parameters();
    expect([others.length, weight!.dtype, weight!.device === device]).toEqual([0, "f64", true]);
    expect(weight!.tolist()).toEqual(whole.parameters()[0]!.tolist());
  }
});

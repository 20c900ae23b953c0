import { spawnSync } from "node:child_process";
import { fileURLToPath, pathToFileURL } from "node:url";
import { expectCode } from "@opt/testkit";
import { bundled } from "@opt/testkit/bundled";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { i32, ModuleBuilder, type Operand, type Value } from "../assembler";
import { push } from "../assembler/value";
import type { Split } from "../kernel";
import { simdProbe } from "../target";
import * as control from "./control";
import { type Entry, ThreadPool } from "./pool";
import type { WorkerThread } from "./start";

const started: WorkerThread[] = vi.hoisted(() => []);
vi.mock("./start", async (original) => {
  const { startWorker, ...rest } = await original<typeof import("./start")>();
  const noting: typeof startWorker = async (...args) => {
    const worker = await startWorker(...args);
    if (worker !== undefined) started.push(worker);
    return worker;
  };
  return { ...rest, startWorker: noting };
});

const CODE = 4096;
const COUNTS = 65_536;

/** i32.atomic.rmw.add, which no kernel has. */
const atomicAdd = (address: Operand<"i32">, value: Operand<"i32">): Value<"i32"> => ({
  type: "i32",
  code: [...push("i32", address), ...push("i32", value), 0xfe, 0x1e, 2, 0],
});

/** Adds `by` to every word of a part, with atomic adds, so that a word counted twice or left out shows. */
function emitCount(): ModuleBuilder {
  const module = new ModuleBuilder({ shared: true });
  const parameters = ["i32", "i32", "i32"] as const;
  module.function({ parameters, export: "unused" }, () => {});
  module.function({ parameters, export: "count" }, (f, start, end, by) => {
    const i = f.local("i32");
    const word = f.local("i32");
    f.for(i, start, end, 1, () => f.set(word, atomicAdd(i32.add(i32.shl(i, 2), COUNTS), by)));
  });
  module.function({ parameters, export: "fail" }, (f) => f.trap());
  // As if a part more had been claimed, by a worker that then ended.
  module.function({ parameters, export: "lose" }, (f) => {
    f.set(f.local("i32"), atomicAdd(i32.const(4 * control.PENDING), 1));
  });
  return module;
}

describe("ThreadPool", () => {
  const memory = new WebAssembly.Memory({ initial: 32, maximum: 32, shared: true });
  const binary = emitCount().build();
  new Uint8Array(memory.buffer, CODE, binary.length).set(binary);
  const exports = new WebAssembly.Instance(new WebAssembly.Module(binary), { env: { memory } }).exports;
  const place = { moduleAddress: CODE, moduleBytes: binary.length };
  const count: Entry = { call: exports.count as Entry["call"], index: 1, ...place };
  let pool: ThreadPool;
  beforeAll(async () => {
    pool = await ThreadPool.start(memory, 3, simdProbe());
  });
  afterAll(() => pool.close());

  it.each([
    [1, 1, 1],
    [7, 16, 3],
    [1000, 1, 999],
    [100_003, 16, 4],
  ])("calls every item of %i once, in units of %i and %i parts", (range, grain, parts) => {
    const counts = new Int32Array(memory.buffer, COUNTS, range + 1).fill(0);
    for (let launch = 0; launch < 500; launch++) pool.run(count, { range, grain, work: range }, parts, [2]);
    expect(counts.subarray(0, range).every((n) => n === 1000)).toBe(true);
    expect(counts[range]).toBe(0);
  });

  it("calls every item once while the calling thread sleeps", () => {
    const counts = new Int32Array(memory.buffer, COUNTS, 1001).fill(0);
    for (let launch = 0; launch < 50; launch++) pool.run(count, { range: 1000, work: 2 ** 30 }, 7, [2]);
    expect(counts.subarray(0, 1000).every((n) => n === 100)).toBe(true);
  });

  it("cuts no more parts than there are units, and none for small work", () => {
    expect(pool.threads).toBe(3);
    expect(pool.parts({ range: 1e6, grain: 16, work: 1000 })).toBe(1);
    expect(pool.parts({ range: 2, work: 2 ** 30 })).toBe(2);
    expect(pool.parts({ range: 33, grain: 16, work: 2 ** 30 })).toBe(3);
    expect(pool.parts({ range: 1e6, work: 2 ** 30 })).toBeGreaterThanOrEqual(3);
    expect(pool.parts({ range: 1e6, work: 2 ** 22 })).toBe(64);
  });

  it("shares no short call for a while after one for which a worker that was awake kept it waiting", async () => {
    const own = new WebAssembly.Memory({ initial: 32, maximum: 32, shared: true });
    new Uint8Array(own.buffer, CODE, binary.length).set(binary);
    const two = await ThreadPool.start(own, 2, simdProbe());
    const words = new Int32Array(own.buffer);
    const untilClaimed = () => {
      for (let ticket = 1; ticket >>> 16 !== (ticket & 0xffff); ticket = Atomics.load(words, control.TICKET));
    };
    const [short, long] = [2 ** 20, 2 ** 30].map((work) => ({ range: 500_000, work })) as [Split, Split];
    expect(two.parts(short)).toBe(16);
    for (let tries = 0; two.parts(short) > 1 && tries < 1000; tries++)
      two.run({ ...count, call: untilClaimed }, short, 2, [0]);
    expect([two.parts(short), two.parts(long) > 1]).toEqual([1, true]);
    for (let calls = 0; calls < 100; calls++) two.parts(short);
    expect(two.parts(short)).toBe(16);
    two.close();
  });

  it("reports a part that fails, and goes on", () => {
    const fail: Entry = { call: exports.fail as Entry["call"], index: 2, ...place };
    expectCode("INTERNAL", () => pool.run(fail, { range: 10, work: 10 }, 3, [1]));
    const counts = new Int32Array(memory.buffer, COUNTS, 10).fill(0);
    pool.run(count, { range: 10, work: 10 }, 3, [1]);
    expect([...counts]).toEqual(new Array(10).fill(1));
  });

  it.each([2 ** 10, 2 ** 30])("whose workers end does the work of %i itself, and counts them no more", async (work) => {
    started.length = 0;
    const own = new WebAssembly.Memory({ initial: 32, maximum: 32, shared: true });
    new Uint8Array(own.buffer, CODE, binary.length).set(binary);
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(binary), { env: { memory: own } });
    const dying = await ThreadPool.start(own, 3, simdProbe());
    for (const worker of started) worker.terminate();
    const counts = new Int32Array(own.buffer, COUNTS, 100);
    await vi.waitFor(() => expect(dying.threads).toBe(1), 10_000);
    dying.run({ ...count, call: exports.count as Entry["call"] }, { range: 100, work }, 3, [1]);
    expect([...counts]).toEqual(new Array(100).fill(1));
    dying.close();
  });

  it("says that a part was lost, and is one thread from then on", async () => {
    const own = new WebAssembly.Memory({ initial: 32, maximum: 32, shared: true });
    new Uint8Array(own.buffer, CODE, binary.length).set(binary);
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(binary), { env: { memory: own } });
    const losing = await ThreadPool.start(own, 2, simdProbe(), 300);
    const lose: Entry = { call: exports.lose as Entry["call"], index: 3, ...place };
    expectCode("INTERNAL", () => losing.run(lose, { range: 2, work: 2 }, 2, [1]));
    expect([losing.threads, losing.parts({ range: 1e6, work: 2 ** 30 })]).toEqual([1, 1]);
  });
});

it("waits on for a worker that is at work when the process has been stopped for long", async () => {
  const own = new WebAssembly.Memory({ initial: 1024, maximum: 1024, shared: true });
  const binary = emitCount().build();
  new Uint8Array(own.buffer, CODE, binary.length).set(binary);
  const two = await ThreadPool.start(own, 2, simdProbe());
  const words = new Int32Array(own.buffer);
  const untilClaimed = () => {
    for (let ticket = 1; ticket >>> 16 !== (ticket & 0xffff); ticket = Atomics.load(words, control.TICKET));
  };
  let hours = 0;
  const clock = vi.spyOn(performance, "now").mockImplementation(() => ++hours * 3_600_000);
  const range = 16_000_000;
  two.run(
    { call: untilClaimed, index: 1, moduleAddress: CODE, moduleBytes: binary.length },
    { range, work: 2 },
    2,
    [1],
  );
  clock.mockRestore();
  expect([two.threads, words.subarray(COUNTS / 4 + range / 2, COUNTS / 4 + range).every((n) => n === 1)]).toEqual([
    2,
    true,
  ]);
  two.close();
});

const [backend] = await bundled(fileURLToPath(new URL("../backend.ts", import.meta.url)));

/** A program of its own, with the ways in which Node must be able to run it. */
function runProgram(program: string, ...flags: string[]) {
  const source = ["--input-type=module", "--eval", program];
  // Numbers are printed as text, which no wish for colour changes.
  const env = { ...process.env, FORCE_COLOR: "1", NO_COLOR: undefined };
  return spawnSync(process.execPath, [...flags, ...source], { env, encoding: "utf8", timeout: 240_000 });
}

const open = `
  import { openWasmBackend } from "${pathToFileURL(backend)}";
  const backend = await openWasmBackend({ threads: 2 });
  const length = 1 << 20;
  const memory = backend.allocate(4 * length);
  backend.write(memory, 0, new Uint8Array(new Float32Array(length).fill(2).buffer));
  const program = {
    buffers: ["a"], scalars: [], outputs: [{ slot: 0, node: 1 }],
    nodes: [{ op: "buffer", args: [], value: 0, uniform: false }, { op: "sqrt", args: [0], value: 0, uniform: false }],
  };
  const kernel = backend.kernel({ kind: "map", program, dtype: "f32" });
  const slice = { memory, byteOffset: 0, length };
  backend.launch({ kind: "map", kernel, inputs: [slice], output: slice, scalars: [], shape: [length], strides: [[1]] });
  const last = new Float32Array(backend.readSync(memory, 4 * length - 4, 4).buffer)[0];
  console.log([backend.threads, last === Math.fround(Math.SQRT2)].join(" "));
`;

describe("a program with idle workers", () => {
  it("ends by itself", () => {
    const { status, stdout, stderr } = runProgram(open);
    expect([status, stdout.trim(), stderr]).toEqual([0, "2 true", ""]);
  });

  it("may forbid code from strings", () => {
    const { status, stdout } = runProgram(open, "--disallow-code-generation-from-strings");
    expect([status, stdout.trim()]).toEqual([0, "2 true"]);
  });

  it.skipIf(process.platform !== "linux")("ends its workers by close (threads can be counted on Linux)", () => {
    const countThreads = `import { readdirSync } from "node:fs";
      const threads = () => readdirSync("/proc/self/task").length; const before = threads();`;
    const close = `const open = threads(); backend.close();
      for (let left = 600; threads() > before && left > 0; left--) await new Promise((resolve) => setTimeout(resolve, 50));`;
    const { status, stdout } = runProgram(
      `${countThreads} ${open} ${close} console.log([open - before, threads() - before].join(" "));`,
    );
    expect([status, stdout.trim().split("\n").at(-1)]).toEqual([0, "1 0"]);
  });
});

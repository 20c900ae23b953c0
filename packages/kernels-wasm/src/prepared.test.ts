/** Prepared launches are set up once; that must show in nothing but time. */
import { type Launch, type Slice, softmaxRows } from "@opt/core/backend";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { openWasmBackend, type WasmBackend } from "./backend";
import { LinearMemory } from "./memory/linear";
import { prepared } from "./prepared";

function place(backend: WasmBackend, numbers: Float32Array): Slice {
  const memory = backend.allocate(numbers.byteLength);
  backend.write(memory, 0, new Uint8Array(numbers.buffer));
  return { memory, byteOffset: 0, length: numbers.length };
}

const read = (backend: WasmBackend, { memory, length }: Slice) =>
  new Float32Array(backend.readSync(memory, 0, 4 * length).buffer as ArrayBuffer);

/** Products that need room in between, of two sizes, a sum in two passes and a row of nothing. */
function launchesOn(backend: WasmBackend) {
  const wave = (n: number) =>
    place(
      backend,
      Float32Array.from({ length: n }, (_, i) => Math.sin(i)),
    );
  const [small, large] = [wave(8 * 8), wave(200 * 200)];
  const [a, b, c, sum, none] = [wave(64), wave(200 * 200), wave(64), wave(1), wave(0)];
  const product = (x: Slice, output: Slice, n: number): Launch => ({
    kind: "matmul",
    kernel: backend.kernel({ kind: "matmul", transposeA: true, transposeB: false, dtype: "f32" }),
    ...{ a: x, b: x, output, batch: 1, m: n, n, k: n, strideA: 0, strideB: 0 },
  });
  const reduce = backend.kernel({ kind: "reduce", op: "sum", dtype: "f32" });
  const softmax = backend.kernel({ kind: "rows", program: softmaxRows, dtype: "f32" });
  const launches: Launch[] = [
    product(small, a, 8),
    product(large, b, 200),
    product(small, c, 8),
    { kind: "rows", kernel: softmax, inputs: [none], outputs: [none], scalars: [], rows: 0, length: 3, ignoreIndex: 0 },
    { kind: "reduce", kernel: reduce, input: b, output: sum, outer: 1, length: 200 * 200, inner: 1 },
  ];
  return { launches, input: large, results: [a, b, c, sum] };
}

describe.each([1, 2])("prepared launches on %d threads", (threads) => {
  it("compute what they find, as launches of their own do", async () => {
    const backend = await openWasmBackend({ threads });
    const [once, eager] = [launchesOn(backend), launchesOn(backend)];
    const list = backend.prepare(once.launches, []);
    for (const factor of [1, 2, -3]) {
      for (const { input } of [once, eager]) {
        backend.write(
          input.memory,
          0,
          new Uint8Array(Float32Array.from({ length: 200 * 200 }, (_, i) => factor * Math.cos(i)).buffer),
        );
      }
      list.run(new Map(), []);
      for (const launch of eager.launches) backend.launch(launch);
      const [actual, expected] = [once, eager].map(({ results }) => results.map((result) => read(backend, result)));
      expect(actual).toEqual(expected);
      expect(actual![1]!.some((value) => value !== 0)).toBe(true);
    }
    backend.close();
  });

  it("use other memory in each run where it is left open, also from another place on", async () => {
    const backend = await openWasmBackend({ threads });
    const { launches, input, results } = launchesOn(backend);
    const list = backend.prepare(launches, [input.memory, results[1]!.memory]);
    for (const factor of [1, 2, -3]) {
      const numbers = Float32Array.from({ length: 200 * 200 + 8 }, (_, i) => factor * Math.cos(i));
      const [source, target] = [place(backend, numbers), place(backend, new Float32Array(200 * 200 + 4))];
      list.run(new Map(), [
        { memory: source.memory, byteOffset: 32 },
        { memory: target.memory, byteOffset: 16 },
      ]);
      const other = launchesOn(backend);
      backend.write(other.input.memory, 0, new Uint8Array(numbers.slice(8).buffer));
      for (const launch of other.launches) backend.launch(launch);
      const [small, large, small2, sum] = other.results.map((result) => read(backend, result));
      expect(read(backend, target).slice(4)).toEqual(large);
      const [a, , c, total] = results.map((result) => read(backend, result));
      expect([a, c, total]).toEqual([small, small2, sum]);
    }
    list.dispose();
    backend.close();
  });

  it("give back what they hold, and room in between is held once", async () => {
    const backend = await openWasmBackend({ threads });
    const { launches } = launchesOn(backend);
    const before = backend.memory.used;
    const [one, three] = [launches, [...launches, ...launches, ...launches]].map((list) => {
      const made = backend.prepare(list, []);
      const held = backend.memory.used - before;
      made.dispose();
      made.dispose();
      expect(backend.memory.used).toBe(before);
      return held;
    });
    expect(three! - one!).toBeLessThan(10_000); // tables alone
    backend.close();
  });
});

it("hold nothing where there is no room for all", async () => {
  const backend = await openWasmBackend({ threads: 1 });
  const { launches } = launchesOn(backend);
  const memory = new LinearMemory(false, 4);
  const runner = { memory, address: () => 0, launch: () => {}, call: () => {} };
  await expectCode("OUT_OF_MEMORY", () => prepared(runner, launches, []));
  expect(memory.used).toBe(0);
});

import { compile, defineRule, fma, gatherSparse, init, parameter, tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { afterEach, describe, expect, it, vi } from "vitest";
import "./index";
import { openWasmBackend } from "./backend";
import { probeTarget } from "./target";

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
});

describe("openWasmBackend", () => {
  it.each([0, -1, 1.5, 257, Number.NaN])("rejects %s threads", async (threads) => {
    await expectCode("BAD_ARGUMENT", () => openWasmBackend({ threads }));
  });

  it.each([null, 2, "2", { thread: 2 }, { threads: "2" }, { threads: null }])(
    "rejects the options %j",
    async (options) => {
      await expectCode("BAD_ARGUMENT", () => openWasmBackend(options as never));
    },
  );

  it("reads OPT_NUM_THREADS", async () => {
    vi.stubEnv("OPT_NUM_THREADS", "many");
    await expectCode("BAD_ARGUMENT", () => openWasmBackend());
    vi.stubEnv("OPT_NUM_THREADS", "1");
    const backend = await openWasmBackend();
    expect([backend.threads, backend.memory.shared]).toEqual([1, false]);
  });

  it("uses one thread where memory cannot be shared", async () => {
    vi.stubGlobal("SharedArrayBuffer", undefined);
    const backend = await openWasmBackend({ threads: 4 });
    expect([backend.threads, backend.memory.shared]).toEqual([1, false]);
  });

  it("uses one thread where workers are rejected, as Node's permission model does", async () => {
    class Worker {
      constructor() {
        throw Object.assign(new Error("Access to this API has been restricted."), { code: "ERR_ACCESS_DENIED" });
      }
    }
    const { getBuiltinModule } = process;
    vi.spyOn(process, "getBuiltinModule").mockImplementation(((name: string) =>
      name === "node:worker_threads" ? { Worker } : getBuiltinModule(name)) as typeof getBuiltinModule);
    expect((await openWasmBackend({ threads: 4 })).threads).toBe(1);
  });

  it("says that the engine has no WebAssembly", async () => {
    vi.stubGlobal("WebAssembly", undefined);
    await expectCode("DEVICE_UNAVAILABLE", () => openWasmBackend());
  });

  it("says that a policy blocks WebAssembly, and what serves instead", async () => {
    const blocked = () => {
      throw new WebAssembly.CompileError("Wasm code generation disallowed by embedder");
    };
    const { Module: _, ...rest } = Object.fromEntries(
      Object.getOwnPropertyNames(WebAssembly).map((name) => [name, WebAssembly[name as keyof typeof WebAssembly]]),
    );
    vi.stubGlobal("WebAssembly", { ...rest, Module: blocked });
    await expectCode("DEVICE_UNAVAILABLE", () => openWasmBackend());
    await expect(openWasmBackend()).rejects.toThrow(/blocked.*`js` serves/s);
  });

  it("is what init opens", async () => {
    expect((await init("wasm")).name).toBe("wasm");
    expect((await init()).name).toBe("wasm");
  });
});

const sgd = defineRule({
  name: "sgd",
  buffers: ["param", "grad"],
  scalars: ["negLr"],
  update: ({ param, grad }, { negLr }) => ({ param: fma(negLr, grad, param) }),
});

it.each([1, 2])("computes at addresses beyond 2 and 3 GiB with %i threads", async (threads) => {
  const backend = await openWasmBackend({ threads });
  const kernel = backend.kernel({ kind: "rule", rule: sgd, dtype: "f32" });
  const ones = new Uint8Array(new Float32Array(100_003).fill(1).buffer);
  for (const gibibytes of [2, 1, 0.9]) {
    backend.allocate(gibibytes * 2 ** 30); // address space only: untouched pages cost nothing
    const slices = [ones, ones].map((bytes) => {
      const memory = backend.allocate(bytes.length);
      backend.write(memory, 0, bytes);
      return { memory, byteOffset: 0, length: 100_003 };
    });
    backend.launch({ kind: "rule", kernel, tensors: [slices], scalars: [-3] });
    const { memory } = slices[0]!;
    const result = new Float32Array(backend.readSync(memory, 0, memory.bytes).buffer);
    expect(result.every((value) => value === -2)).toBe(true);
  }
  expectCode("OUT_OF_MEMORY", () => backend.allocate(2 ** 28));
  backend.close();
});

it("runs of a compiled function write nowhere else: what only its host code looks into is held, too", async () => {
  const device = await init("wasm");
  const table = parameter([[1], [2], [3]]);
  const rows = tensor([0, 2, 0], { dtype: "i32" });
  const step = compile(
    () => {
      gatherSparse(table, rows).sum().backward();
      table.grad = null; // its rows are found by the host, and no launch uses them
    },
    { check: "never" },
  );
  step();
  const others = Array.from({ length: 20 }, () => tensor([7, 7, 7], { dtype: "i32", device }));
  step();
  expect(others.map((other) => other.tolist())).toEqual(others.map(() => [7, 7, 7]));
  step.dispose();
});

it("neither leaks nor grows over 100,000 steps", async () => {
  const backend = await openWasmBackend({ threads: 1 });
  const kernel = backend.kernel({ kind: "rule", rule: sgd, dtype: "f32" });
  const param = backend.allocate(4 * 100);
  backend.write(param, 0, new Uint8Array(400));
  const ones = new Uint8Array(new Float32Array(100).fill(1).buffer);
  const { used } = backend.memory;
  let settled = 0;
  for (let step = 0; step < 100_000; step++) {
    const length = 1 + (step % 100);
    const grad = backend.allocate(4 * length);
    backend.write(grad, 0, ones.subarray(0, 4 * length));
    const tensors = [[param, grad].map((memory) => ({ memory, byteOffset: 0, length }))];
    backend.launch({ kind: "rule", kernel, tensors, scalars: [-1] });
    backend.free(grad);
    if (step === 100) settled = backend.memory.reserved;
  }
  expect([backend.memory.used, backend.memory.reserved]).toEqual([used, settled]);
  expect(new Float32Array(backend.readSync(param, 0, 400).buffer)[99]).toBe(-1000);
});

describe("probeTarget", () => {
  const major = Number(process.versions.node.split(".")[0]);
  it.skipIf(major < 22)("finds the fused multiply-add (relaxed SIMD comes with Node 22)", () => {
    expect(probeTarget(true)).toEqual({ shared: true, relaxedSimd: true, fused: { f32: true, f64: true } });
  });

  it("does without where relaxed SIMD is unknown", () => {
    vi.spyOn(WebAssembly, "validate").mockReturnValueOnce(true).mockReturnValueOnce(false);
    expect(probeTarget(false)).toEqual({ shared: false, relaxedSimd: false, fused: { f32: false, f64: false } });
    vi.restoreAllMocks();
  });
});

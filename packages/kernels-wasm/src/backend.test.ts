import { init } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { afterEach, describe, expect, it, vi } from "vitest";
import "./index";
import { openWasmBackend } from "./backend";
import { probeTarget } from "./target";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.unstubAllEnvs();
});

describe("openWasmBackend", () => {
  it.each([0, -1, 1.5, Number.NaN])("refuses %s threads", async (threads) => {
    await expectCode("BAD_ARGUMENT", () => openWasmBackend({ threads }));
  });

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

/** Host code on a fake table of driver functions: errors, memory, order of calls. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Slice } from "@opt/core/backend";
import { expectCode } from "@opt/testkit";
import { everyOp } from "@opt/testkit/built-rules";
import { expect, it } from "vitest";
import { fakeDriver, openFake } from "../testing/fake-driver";

const ILLEGAL_ADDRESS = 700;
const INVALID_VALUE = 1;
const count = (calls: readonly string[], name: string) => calls.filter((call) => call === name).length;

function ruleLaunch(backend: ReturnType<typeof openFake>, length = 1000) {
  const kernel = backend.kernel({ kind: "rule", rule: everyOp, dtype: "f32" });
  const slices = everyOp.buffers.map((): Slice => ({ memory: backend.allocate(length * 4), byteOffset: 0, length }));
  const launch = { kind: "rule", kernel, tensors: [slices], scalars: [0.1, 2] } as const;
  return { slices, start: () => backend.launch(launch) };
}

function _matmulLaunch(backend: ReturnType<typeof openFake>) {
  const kernel = backend.kernel({ kind: "matmul", transposeA: false, transposeB: false, dtype: "f32" });
  const slice = (): Slice => ({ memory: backend.allocate(36), byteOffset: 0, length: 9 });
  const sizes = { batch: 1, m: 3, n: 3, k: 3, strideA: 9, strideB: 9 };
  return { kind: "matmul", kernel, a: slice(), b: slice(), output: slice(), ...sizes } as const;
}

it.each([
  ["no driver that starts", { cuInit: 100 }, /does not start: CUDA_ERROR_100/],
  ["no GPU", {}, /no NVIDIA GPU/],
])("says DEVICE_UNAVAILABLE with %s", (_, failures, words) => {
  const driver = fakeDriver({ gpus: 0 });
  for (const [name, status] of Object.entries(failures)) driver.failures.set(name, status);
  expectCode("DEVICE_UNAVAILABLE", () => openFake(driver));
  expect(() => openFake(driver)).toThrow(words);
});

it("opens the GPU that is asked for, and says how many there are", () => {
  const driver = fakeDriver({ gpus: 2 });
  expect(openFake(driver, 1).gpu.index).toBe(1);
  expect(() => openFake(driver, 2)).toThrow("there are 2 NVIDIA GPUs, got number 2");
});

it("gives freed memory out again without asking the driver", () => {
  const driver = fakeDriver();
  const backend = openFake(driver);
  for (let step = 0; step < 1000; step++) backend.free(backend.allocate(100_000 + (step % 7)));
  expect(count(driver.calls, "cuMemAlloc_v2")).toBe(1);
  expect(backend.reserved().device).toBe(106_496);
});

it("returns what it keeps before it says OUT_OF_MEMORY, and then says who has the memory", () => {
  const driver = fakeDriver({ bytes: 2 ** 20 });
  const backend = openFake(driver);
  backend.free(backend.allocate(600_000));
  const large = backend.allocate(900_000);
  expectCode("OUT_OF_MEMORY", () => backend.allocate(200_000));
  expect(() => backend.allocate(200_000)).toThrow(
    /cannot allocate 200000 bytes: 1 MiB in use here, 0 MiB of 1 MiB free on fake GPU/,
  );
  backend.free(large);
  backend.allocate(200_000);
});

it("maps the driver's errors, and goes on after those that pass", () => {
  const driver = fakeDriver();
  const { start } = ruleLaunch(openFake(driver));
  driver.failures.set("launch", INVALID_VALUE);
  expectCode("DEVICE_ERROR", start);
  expect(start).toThrow("launching a kernel failed: CUDA_ERROR_1");
  driver.failures.clear();
  start();
});

it("stops for good after an error that the context does not survive, with the first cause in every message", async () => {
  const driver = fakeDriver();
  const backend = openFake(driver);
  const { start } = ruleLaunch(backend);
  driver.failures.set("waitForEvent", ILLEGAL_ADDRESS);
  await expectCode("DEVICE_LOST", () => backend.sync());
  driver.failures.clear();
  expectCode("DEVICE_LOST", start);
  expect(start).toThrow(/the GPU stopped working when work on the GPU failed \(CUDA_ERROR_700\)/);
  expectCode("DEVICE_LOST", () => backend.allocate(4));
  backend.close();
});

it.each([4, 214, 220, 226, 702, 709, 710, 716, 719, 809, 911])("CUresult %s ends the device", (status) => {
  const driver = fakeDriver();
  const { start } = ruleLaunch(openFake(driver));
  driver.failures.set("launch", status);
  expectCode("DEVICE_LOST", start);
});

/** A folder of kernels as a build with this CUDA leaves it. */
function builtBy(cuda: number): string {
  const folder = mkdtempSync(join(tmpdir(), "opt-cuda-"));
  writeFileSync(join(folder, "rules.fatbin"), "");
  writeFileSync(join(folder, "toolkit.json"), JSON.stringify({ cuda }));
  return folder;
}

it("needs a driver for the CUDA that built the kernels, or a newer one", () => {
  const driver = fakeDriver();
  driver.version = 12080;
  const kernels = builtBy(13.1);
  expectCode("DEVICE_UNAVAILABLE", () => openFake(driver, 0, { kernels }));
  expect(() => openFake(driver, 0, { kernels })).toThrow(
    /built by CUDA 13\.1, and the driver serves CUDA 12\.8\. Update the driver to one for CUDA 13\.0 or newer\. .*"cpu" and "wasm"/,
  );
  openFake(driver, 0, { kernels: builtBy(12.8) }).close();
  driver.version = 13000;
  openFake(driver, 0, { kernels }).close();
});

it("says at once that the driver does not take the kernels, and lets go of the GPU", () => {
  const driver = fakeDriver();
  driver.failures.set("cuModuleLoadData", 209);
  expectCode("DEVICE_UNAVAILABLE", () => openFake(driver));
  expect(() => openFake(driver)).toThrow(/loading the kernels rules failed: CUDA_ERROR_209/);
  expect(count(driver.calls, "cuDevicePrimaryCtxRelease_v2")).toBe(2);
});

it("closes and lets go of prepared launches in its own context, whichever is current", () => {
  const driver = fakeDriver({ gpus: 2 });
  const [first, second] = [openFake(driver, 0), openFake(driver, 1)];
  const kernel = first.kernel({ kind: "rule", rule: everyOp, dtype: "f32" });
  const slice = (): Slice => ({ memory: first.allocate(4000), byteOffset: 0, length: 1000 });
  const launch = { kind: "rule", kernel, tensors: [everyOp.buffers.map(slice)], scalars: [0.1, 2] } as const;
  first.write(slice().memory, 0, new Uint8Array(4000));
  const list = first.prepare([launch], []);
  for (const body of [() => list.dispose(), () => first.close(), () => second.close()]) {
    const other = body.toString().includes("second") ? 1000 : 1001;
    driver.cuCtxSetCurrent(other);
    const before = driver.calls.length;
    body();
    const calls = driver.calls.map((name, i) => ({ name, context: driver.contexts[i] })).slice(before);
    expect(calls.filter(({ name, context }) => context === other && name !== "cuCtxSetCurrent")).toEqual([]);
    expect(calls.length).toBeGreaterThan(1);
  }
});

it("leaves a lost GPU alone when it closes", async () => {
  const driver = fakeDriver();
  const backend = openFake(driver);
  const { start, slices } = ruleLaunch(backend);
  start();
  for (const { memory } of slices) backend.free(memory);
  const list = backend.prepare([], []);
  driver.failures.set("waitForEvent", ILLEGAL_ADDRESS);
  await expectCode("DEVICE_LOST", () => backend.sync());
  for (const name of ["cuMemFree_v2", "cuMemFreeHost", "cuCtxSetCurrent"]) driver.failures.set(name, ILLEGAL_ADDRESS);
  list.dispose();
  backend.close();
});

it("has a table of its own for another dtype, and for other lengths at the same addresses", () => {
  const driver = fakeDriver();
  const backend = openFake(driver);
  const memories = [1, 2].map(() => everyOp.buffers.map(() => backend.allocate(8000)));
  const launch = (dtype: "f32" | "f64", ...lengths: number[]) => {
    const kernel = backend.kernel({ kind: "rule", rule: everyOp, dtype });
    const tensors = lengths.map((length, t) => memories[t]!.map((memory) => ({ memory, byteOffset: 0, length })));
    const before = count(driver.calls, "cuMemcpyHtoDAsync_v2");
    backend.launch({ kind: "rule", kernel, tensors, scalars: [0.1, 2] });
    return count(driver.calls, "cuMemcpyHtoDAsync_v2") - before;
  };
  expect([launch("f32", 1000, 1000), launch("f64", 1000, 1000), launch("f32", 1000, 900), launch("f32", 900)]).toEqual([
    1, 1, 1, 1,
  ]);
  expect([launch("f64", 1000, 1000), launch("f32", 1000, 900), launch("f32", 900)]).toEqual([0, 0, 0]);
});

it("holds nothing of prepared launches that failed", () => {
  const driver = fakeDriver();
  const backend = openFake(driver);
  const kernel = backend.kernel({ kind: "rule", rule: everyOp, dtype: "f32" });
  const slices = everyOp.buffers.map((): Slice => ({ memory: backend.allocate(400), byteOffset: 0, length: 100 }));
  const launch = { kind: "rule", kernel, tensors: [slices], scalars: [0.1, 2] } as const;
  const failing = [
    ["launch", INVALID_VALUE],
    ["cuStreamBeginCapture_v2", INVALID_VALUE],
    ["cuStreamEndCapture", INVALID_VALUE],
    ["cuGraphInstantiateWithFlags", INVALID_VALUE],
  ] as const;
  backend.prepare([launch, launch], []).dispose();
  const { device } = backend.reserved();
  for (const [name, status] of failing) {
    for (let i = 0; i < 20; i++) {
      driver.failures.set(name, status);
      expectCode("DEVICE_ERROR", () => backend.prepare([launch, launch], []));
      driver.failures.clear();
    }
    backend.launch(launch); // not into the graph
  }
  expect(backend.reserved().device).toBeLessThanOrEqual(device + 1024);
  const made = count(driver.calls, "cuStreamEndCapture") - 20; // those that failed made none
  expect(count(driver.calls, "cuGraphDestroy")).toBe(made);
});

it("does not wait for the GPU with a small write because large ones have taken the room", () => {
  const driver = fakeDriver();
  driver.gpuIsBusy = true;
  const backend = openFake(driver);
  const memory = backend.allocate(2 ** 25);
  backend.write(memory, 0, new Uint8Array(8));
  for (let write = 0; write < 8; write++) backend.write(memory, 0, new Uint8Array(2 ** 25));
  const before = count(driver.calls, "cuEventSynchronize");
  for (let write = 0; write < 100; write++) backend.write(memory, 0, new Uint8Array(8));
  expect(count(driver.calls, "cuEventSynchronize")).toBe(before);
});

it("reads gigabytes through a few blocks of pinned memory", async () => {
  const driver = fakeDriver({ bytes: 2 ** 35 });
  const backend = openFake(driver);
  const memory = backend.allocate(2 ** 31);
  const bytes = await backend.read(memory, 0, 2 ** 31);
  expect([bytes.length, backend.reserved().host]).toEqual([2 ** 31, 2 ** 27]);
  expect(count(driver.calls, "copyInOrder")).toBe(64);
});

it("writes a table once for launches on the same memory, and again when memory changes", () => {
  const driver = fakeDriver();
  const backend = openFake(driver);
  const [first, second] = [ruleLaunch(backend), ruleLaunch(backend, 2000)];
  for (let step = 0; step < 5; step++) first.start();
  expect(count(driver.calls, "cuMemcpyHtoDAsync_v2")).toBe(1);
  second.start();
  first.start();
  expect(count(driver.calls, "cuMemcpyHtoDAsync_v2")).toBe(2);
  expect(count(driver.calls, "launch")).toBe(7);
});

it("takes new staging buffers while the GPU still copies, up to a limit, and reuses them afterwards", () => {
  const driver = fakeDriver();
  driver.gpuIsBusy = true;
  const backend = openFake(driver);
  const memory = backend.allocate(2 ** 24);
  const bytes = new Uint8Array(2 ** 24);
  for (let write = 0; write < 16; write++) backend.write(memory, 0, bytes);
  expect(backend.reserved().host).toBe(2 ** 28);
  driver.gpuIsBusy = false;
  for (let write = 0; write < 16; write++) backend.write(memory, 0, bytes);
  expect(backend.reserved().host).toBe(2 ** 28);
});

it("rejects slices outside of their memory, freed memory, another device's, and buffers of different lengths", () => {
  const backend = openFake(fakeDriver());
  const kernel = backend.kernel({ kind: "rule", rule: everyOp, dtype: "f32" });
  const slice = (memory = backend.allocate(32)): Slice => ({ memory, byteOffset: 0, length: 8 });
  const start = (bad: Partial<Slice>, scalars = [0.1, 2]) =>
    backend.launch({ kind: "rule", kernel, tensors: [[slice(), slice(), { ...slice(), ...bad }]], scalars });
  for (const bad of [{ byteOffset: 4 }, { byteOffset: -4 }, { byteOffset: 2, length: 4 }, { length: 7 }]) {
    expectCode("INTERNAL", () => start(bad));
  }
  expectCode("INTERNAL", () => start({}, [0.1]));
  expectCode("DEVICE_MISMATCH", () => start({ memory: { bytes: 32 } }));
  expectCode("DEVICE_MISMATCH", () => start({ memory: openFake(fakeDriver()).allocate(32) }));
  const { memory } = slice();
  backend.free(memory);
  expectCode("DISPOSED", () => start({ memory }));
  expectCode("DISPOSED", () => backend.readSync(memory, 0, 4));
});

it("rejects kernels that no build knew where NVRTC is not", () => {
  const backend = openFake(fakeDriver());
  const rule = { ...everyOp, name: "another", hash: "unbuilt" };
  expectCode("UNSUPPORTED", () => backend.kernel({ kind: "rule", rule, dtype: "f32" }));
  expect(() => backend.kernel({ kind: "rule", rule, dtype: "f32" })).toThrow(/the rule "another" .*NVRTC is not here/);
});

it("has one wait at a time on the event loop's threads", async () => {
  const driver = fakeDriver();
  let waits = 0;
  let most = 0;
  driver.waitForEvent = async () => {
    most = Math.max(most, ++waits);
    await new Promise((resolve) => setImmediate(resolve));
    waits--;
    return 0;
  };
  const backend = openFake(driver);
  const memory = backend.allocate(64);
  await Promise.all([backend.read(memory, 0, 4), backend.sync(), backend.read(memory, 4, 4)]);
  expect(most).toBe(1);
});

/** A table of driver functions without a driver: it hands out numbers, notes every call, keeps a budget of memory, and fails where a test says so. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CudaBackend, type CudaParts } from "../src/backend";
import { ATTRIBUTE, type Driver, type Out, STATUS } from "../src/driver";

export interface FakeDriver extends Driver {
  readonly calls: string[];
  /** Status by function, until it is removed. */
  readonly failures: Map<string, number>;
  /** Bytes that are not allocated. */
  freeBytes: number;
  /** What cuEventQuery finds. */
  gpuIsBusy: boolean;
  /** What the driver serves: 13000 for CUDA 13.0. */
  version: number;
  /** The context in which each call was made. */
  readonly contexts: number[];
}

export function fakeDriver({ gpus = 1, bytes = 2 ** 30 } = {}): FakeDriver {
  const calls: string[] = [];
  const contexts: number[] = [];
  const failures = new Map<string, number>();
  let context = 0;
  const blocks = new Map<number, number>();
  let next = 4096;
  const give = (out: Out, value: number) => {
    (out as BigUint64Array)[0] = BigInt(value);
    return STATUS.success;
  };
  const handle = (out: Out) => {
    next += 4096;
    return give(out, next);
  };
  const own: Partial<FakeDriver> = {
    cuDriverGetVersion: (out) => give(out, own.version!),
    cuDevicePrimaryCtxRetain: (out, device) => give(out, 1000 + device),
    cuCtxSetCurrent: (next) => {
      context = next;
      return STATUS.success;
    },
    cuDeviceGetCount: (out) => give(out, gpus),
    cuDeviceGet: (out, ordinal) => give(out, ordinal),
    cuDeviceGetName: (name) => {
      (name as Uint8Array).set(Buffer.from("fake GPU\0"));
      return STATUS.success;
    },
    cuDeviceGetAttribute: (out, attribute) => give(out, attribute === ATTRIBUTE.multiprocessors ? 4 : 9),
    cuMemAlloc_v2: (out, size) => {
      if (size > own.freeBytes!) return STATUS.outOfMemory;
      own.freeBytes! -= size;
      handle(out);
      blocks.set(next, size);
      next += size;
      return STATUS.success;
    },
    cuMemFree_v2: (address) => {
      own.freeBytes! += blocks.get(address)!;
      blocks.delete(address);
      return STATUS.success;
    },
    cuMemGetInfo_v2: (free, total) => give(free, own.freeBytes!) || give(total, bytes),
    cuEventQuery: () => (own.gpuIsBusy ? STATUS.notReady : STATUS.success),
    cuModuleGetFunction: (out, _module, name) => (name.includes("unbuilt") ? STATUS.notFound : handle(out)),
    errorText: (status) => `CUDA_ERROR_${status}`,
    waitForEvent: async () => failures.get("waitForEvent") ?? STATUS.success,
    ...{ calls, contexts, failures, freeBytes: bytes, gpuIsBusy: false, version: 13000 },
  };
  for (const name of ["cuStreamCreate", "cuEventCreate", "cuMemAllocHost_v2"] as const) own[name] = handle;
  own.cuModuleLoadData = own.cuGraphInstantiateWithFlags = handle;
  own.cuStreamEndCapture = (_stream, graph) => handle(graph);
  return new Proxy(own as FakeDriver, {
    get(target, name: string) {
      const value = target[name as keyof FakeDriver] as unknown;
      if (value !== undefined && typeof value !== "function") return value;
      return (...args: unknown[]) => {
        calls.push(name);
        contexts.push(context);
        const failure = failures.get(name);
        if (failure !== undefined && name !== "waitForEvent") return failure;
        return value === undefined ? STATUS.success : (value as (...all: unknown[]) => unknown)(...args);
      };
    },
  });
}

const folder = mkdtempSync(join(tmpdir(), "opt-cuda-"));
for (const file of ["rules", "copy", "reduce", "matmul"]) writeFileSync(join(folder, `${file}.fatbin`), "");

export function openFake(driver: Driver, index = 0, parts: Partial<CudaParts> = {}): CudaBackend {
  return new CudaBackend(index, { driver, kernels: folder, ...parts });
}

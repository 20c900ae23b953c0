// Limits, late errors and the loss of the device.
import { abs, add, defineRule, div, fma, init, less, type OptError, parameter, sqrt, tensor, where } from "@opt/core";
import type { Slice } from "@opt/core/backend";
import { expectCode, seededArray, useSoftwareVulkan, whyUnavailable } from "@opt/testkit";
import { afterEach, describe, expect, it, vi } from "vitest";
import { openWebGpuBackend, type WebGpuBackend, type WebGpuOptions } from "./index";

useSoftwareVulkan();
const reason = await whyUnavailable(() => openWebGpuBackend());

describe("openWebGpuBackend", () => {
  afterEach(() => vi.unstubAllGlobals());

  it("says that there is no adapter, and what serves instead", async () => {
    vi.stubGlobal("navigator", { gpu: { requestAdapter: async () => null } });
    await expectCode("DEVICE_UNAVAILABLE", () => openWebGpuBackend());
    await expect(openWebGpuBackend()).rejects.toThrow(/no adapter answers.*`wasm`.*serves/s);
  });

  it("says that the adapter opens no device", async () => {
    const adapter = { features: new Set(), limits: {}, requestDevice: () => Promise.reject(new Error("busy")) };
    vi.stubGlobal("navigator", { gpu: { requestAdapter: async () => adapter } });
    await expect(openWebGpuBackend()).rejects.toThrow(/opens no device: Error: busy/);
  });
});

describe.skipIf(reason !== undefined)(`webgpu${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  const opened: WebGpuBackend[] = [];
  async function open(options?: WebGpuOptions): Promise<WebGpuBackend> {
    const backend = await openWebGpuBackend(options);
    opened.push(backend);
    return backend;
  }
  afterEach(() => {
    for (const backend of opened.splice(0)) backend.close();
  });

  function upload(backend: WebGpuBackend, array: Float32Array): Slice {
    const memory = backend.allocate(array.byteLength);
    backend.write(memory, 0, new Uint8Array(array.buffer));
    return { memory, byteOffset: 0, length: array.length };
  }

  async function download(backend: WebGpuBackend, { memory, byteOffset, length }: Slice): Promise<Float32Array> {
    return new Float32Array((await backend.read(memory, byteOffset, length * 4)).buffer);
  }

  const dense = { shape: [0], sourceStrides: [1], targetStrides: [1] };

  it("takes a device of the caller's", async () => {
    const { device } = await open();
    const backend = new (Object.getPrototypeOf(opened[0]!).constructor)(device) as WebGpuBackend;
    const slice = upload(backend, Float32Array.of(1, 2, 3));
    expect([...(await download(backend, slice))]).toEqual([1, 2, 3]);
  });

  it("writes the bytes that it is given and no others", async () => {
    const backend = await open();
    const memory = backend.allocate(16);
    for (let at = 0; at < 8; at++)
      for (let bytes = 0; bytes <= 8; bytes++) {
        const expected = new Uint8Array(16).fill(255);
        backend.write(memory, 0, expected);
        backend.write(memory, at, expected.subarray(at, at + bytes).fill(7));
        expect(await backend.read(memory, 0, 16), `${bytes} at ${at}`).toEqual(expected);
      }
  });

  it("says that software imitates the GPU, which init() then passes over", async ({ skip }) => {
    const { device, software } = await open();
    if (device.adapterInfo.architecture !== "swiftshader") skip("known of SwiftShader");
    expect([software, (await init()).name]).toEqual([true, "js"]);
    const named = (adapterInfo: Partial<GPUAdapterInfo>) => altered(device, { adapterInfo, destroy() {} });
    const kinds = [
      { vendor: "mesa", description: "llvmpipe (LLVM 15.0.6, 256 bits)" },
      { vendor: "microsoft", description: "Microsoft Basic Render Driver" },
      { isFallbackAdapter: true },
      { vendor: "nvidia", architecture: "hopper" },
      { vendor: "amd", description: "Radeon RX 9070 (warped)" },
    ];
    const found = await Promise.all(kinds.map(async (info) => (await open({ device: named(info) })).software));
    expect(found).toEqual([true, true, true, false, false]);
  });

  it("rejects float64", async () => {
    const backend = await open();
    await expectCode("UNSUPPORTED", () => backend.kernel({ kind: "copy", from: "f64", to: "f32" }));
    await init("webgpu");
    await expectCode("UNSUPPORTED", () => tensor(Float64Array.of(1)).add(1));
  });

  it("cannot be read without waiting", async () => {
    await init("webgpu");
    await expectCode("NOT_SYNC", () => parameter([1]).dataSync());
  });

  it("rejects more than a buffer can hold before it asks the device", async () => {
    const backend = await open();
    await expectCode("OUT_OF_MEMORY", () => backend.allocate(2 ** 45));
  });

  it("opens further heaps when the first is full, and binds them together", async () => {
    const backend = await open({ firstHeap: 4096 });
    const arrays = Array.from({ length: 7 }, (_, i) => seededArray("f32", 600, { seed: i }));
    const slices = arrays.map((array) => upload(backend, array));
    const kernel = backend.kernel({ kind: "copy", from: "f32", to: "f32" });
    for (const target of slices.slice(1)) {
      backend.launch({ kind: "copy", kernel, source: slices[0]!, target, ...dense, shape: [600] });
    }
    expect(await download(backend, slices[6]!)).toAgreeWith(arrays[0]!);
    expect(new Set(slices.map(({ memory }) => (memory as { heap?: unknown }).heap)).size).toBeGreaterThan(1);
  });

  it("splits updates, maps and copies of tensors that are larger than a binding may be", async () => {
    const size = 40_003;
    const backend = await open({ binding: 2 ** 16 });
    const [a, b, c] = [1, 2, 3].map((seed) => seededArray("f32", size, { seed }));
    const [x, y, z] = [a!, b!, c!].map((array) => upload(backend, array));
    const kernel = backend.kernel({ kind: "copy", from: "f32", to: "f32" });
    backend.launch({ kind: "copy", kernel, source: x!, target: y!, ...dense, shape: [size] });
    expect(await download(backend, y!)).toAgreeWith(a!);
    const program = {
      buffers: ["a", "b"],
      scalars: [],
      nodes: [
        { op: "buffer", args: [], value: 0, uniform: false },
        { op: "buffer", args: [], value: 1, uniform: false },
        { op: "max", args: [0, 1], value: 0, uniform: false },
      ],
      outputs: [{ slot: 0, node: 2 }],
    } as const;
    const larger = backend.kernel({ kind: "map", program, dtype: "f32" });
    const strides = [[1], [1]];
    backend.launch({ kind: "map", kernel: larger, inputs: [z!, x!], output: z!, scalars: [], shape: [size], strides });
    expect(await download(backend, z!)).toAgreeWith(c!.map((value, i) => Math.max(value, a![i]!)));
    const squares = backend.kernel({ kind: "sumSquares", dtype: "f32" });
    const output = upload(backend, new Float32Array(1));
    backend.launch({ kind: "sumSquares", kernel: squares, inputs: [x!], output });
    const expected = a!.reduce((sum, value) => sum + value * value, 0);
    expect((await download(backend, output))[0]! / expected).toBeCloseTo(1, 4);
    const rule = defineRule({
      name: "descent",
      buffers: ["param", "grad"],
      scalars: ["rate"],
      update: ({ param, grad }, { rate }) => ({ param: fma(rate, grad, param) }),
    });
    const small = upload(backend, Float32Array.of(1, 2));
    const descent = backend.kernel({ kind: "rule", rule, dtype: "f32" });
    const before = await download(backend, z!);
    backend.launch({
      kind: "rule",
      kernel: descent,
      tensors: [[z!, x!], [small, y!].map((slice) => ({ ...slice, length: 2 }))],
      scalars: [0.5],
    });
    expect(await download(backend, z!)).toAgreeWith(before.map((value, i) => value + 0.5 * a![i]!));
    backend.free(x!.memory);
    await backend.sync();
  });

  it("says which launch wants more of one tensor than a binding shows", async () => {
    const backend = await open({ binding: 2 ** 16 });
    const input = upload(backend, new Float32Array(40_000));
    const output = upload(backend, new Float32Array(1));
    const kernel = backend.kernel({ kind: "reduce", op: "sum", dtype: "f32" });
    const launch = { kind: "reduce", kernel, input, output, outer: 1, length: 40_000, inner: 1 } as const;
    await expectCode("UNSUPPORTED", () => backend.launch(launch));
    expect(() => backend.launch(launch)).toThrow(/reduce sum.*65536 bytes.*160000|160256/s);
  });

  it("adds up without subgroups too", async () => {
    const backend = await open({ subgroups: false });
    const input = upload(backend, new Float32Array(5000).fill(1));
    const output = upload(backend, new Float32Array(1));
    const kernel = backend.kernel({ kind: "reduce", op: "sum", dtype: "f32" });
    backend.launch({ kind: "reduce", kernel, input, output, outer: 1, length: 5000, inner: 1 });
    expect([...(await download(backend, output))]).toEqual([5000]);
  });

  it("raises what the device finds wrong with a kernel at the next await, by its name", async () => {
    const backend = await open();
    const target = upload(backend, new Float32Array(4));
    const shader = { name: "broken", slices: { word: "u32" }, params: {}, body: () => "put_word(0u, 1.5f);" } as const;
    backend.dispatch(shader, [target], {}, 1);
    await expectCode("DEVICE_ERROR", () => backend.sync());
    backend.dispatch(shader, [target], {}, 1);
    await expect(backend.sync()).rejects.toThrow(/broken/);
    await backend.sync(); // raised once
  });

  it("raises that memory ran out at the next await", async () => {
    const { device } = await open();
    const full = altered(device, { popErrorScope: async () => ({ message: "full" }) });
    const backend = await openWebGpuBackend({ device: full });
    backend.allocate(1000);
    await expectCode("OUT_OF_MEMORY", () => backend.sync());
  });

  /** The device with some of its functions and properties replaced. */
  function altered<T extends object>(object: T, changes: Partial<Record<keyof T, unknown>>): T {
    return new Proxy(object, {
      get(target, key) {
        if (key in changes) return changes[key as keyof T];
        const value = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }

  it("drops a heap that the device had no memory for, and goes on with smaller ones", async () => {
    const { device } = await open();
    const scopes: boolean[] = [];
    const sizes: number[] = [];
    const backend = await open({
      firstHeap: 4096,
      device: altered(device, {
        pushErrorScope: () => scopes.push(false),
        popErrorScope: async () => (scopes.pop() ? { message: "full" } : null),
        createBuffer(descriptor: GPUBufferDescriptor) {
          if (!descriptor.label?.startsWith("heap")) return device.createBuffer(descriptor);
          const failed = descriptor.size > 5000;
          if (failed) scopes[scopes.length - 1] = true;
          sizes.push(failed ? -descriptor.size : descriptor.size);
          return device.createBuffer({ ...descriptor, size: failed ? 4 : descriptor.size });
        },
      }),
    });
    const some = () =>
      upload(
        backend,
        Float32Array.from({ length: 512 }, (_, i) => i),
      );
    const kept = [some(), some(), some(), some()];
    await backend.sync();
    const lost = [backend.allocate(2048), backend.allocate(2048)];
    await expectCode("OUT_OF_MEMORY", () => backend.sync());
    for (let i = 0; i < 2; i++) kept.push(some());
    for (const memory of lost) backend.free(memory);
    await backend.sync();
    for (const slice of kept) expect((await download(backend, slice))[511]).toBe(511);
    expect(sizes).toEqual([4096, 4096, -8192, 4096]);
  });

  it("reads more than half of what one buffer may hold", async () => {
    const { device } = await open();
    const most = 1.5 * 2 ** 20;
    const limits = new Proxy(device.limits, {
      get: (target, key) => (key === "maxBufferSize" ? most : Reflect.get(target, key, target)),
    });
    const createBuffer = (descriptor: GPUBufferDescriptor) => {
      expect(descriptor.size).toBeLessThanOrEqual(most);
      return device.createBuffer(descriptor);
    };
    const backend = await open({ firstHeap: 4096, device: altered(device, { limits, createBuffer }) });
    const array = seededArray("f32", 350_000, { seed: 1 });
    expect(await download(backend, upload(backend, array))).toAgreeWith(array);
  });

  /** The grids of a copy of 10,000 elements. */
  async function gridsOfCopy(options: WebGpuOptions): Promise<number[][]> {
    const { device } = await open();
    const grids: number[][] = [];
    const createCommandEncoder = () => {
      const encoder = device.createCommandEncoder();
      const beginComputePass = () => {
        const pass = encoder.beginComputePass();
        const dispatchWorkgroups = (...grid: number[]) => {
          grids.push(grid);
          pass.dispatchWorkgroups(...(grid as [number, number]));
        };
        return altered(pass, { dispatchWorkgroups });
      };
      return altered(encoder, { beginComputePass, finish: () => encoder.finish() });
    };
    const backend = await open({ device: altered(device, { createCommandEncoder }), ...options });
    const array = seededArray("f32", 10_000, { seed: 1 });
    const [source, target] = [upload(backend, array), upload(backend, new Float32Array(10_000))];
    const kernel = backend.kernel({ kind: "copy", from: "f32", to: "f32" });
    backend.launch({ kind: "copy", kernel, source, target, ...dense, shape: [10_000] });
    expect(await download(backend, target)).toAgreeWith(array);
    return grids;
  }

  it("launches no more workgroups a dimension than the device takes", async () => {
    expect(await gridsOfCopy({ grid: 3, software: false })).toEqual([[3, 14]]);
  });

  it("gives software fewer and larger workgroups than a GPU, as many as its bindings have room for", async () => {
    expect(await gridsOfCopy({ software: false })).toEqual([[40, 1]]);
    expect(await gridsOfCopy({ software: true })).toEqual([[3, 1]]);
    expect(await gridsOfCopy({ software: true, binding: 2 ** 16 })).toEqual([[5, 1]]);
  });

  it("reads by pieces what is larger than a staging buffer, from any byte on", async () => {
    const backend = await open();
    const bytes = new Uint8Array(2 ** 27 + 13).map((_, i) => i % 251);
    const memory = backend.allocate(bytes.length);
    backend.write(memory, 0, bytes);
    expect(Buffer.compare(await backend.read(memory, 3, bytes.length - 4), bytes.subarray(3, -1))).toBe(0);
  });

  it("gives tensors the same bits wherever they begin, and leaves their neighbours alone", async () => {
    const backend = await open();
    const rule = defineRule({
      name: "bounded descent",
      buffers: ["param", "grad"],
      scalars: ["rate", "skip"],
      update: ({ param, grad }, { rate, skip }) => ({
        param: where(less(0, skip), param, fma(rate, div(grad, add(sqrt(abs(grad)), 0.5)), param)),
      }),
    });
    const kernel = backend.kernel({ kind: "rule", rule, dtype: "f32" });
    const skip = upload(backend, Float32Array.of(0));
    for (const size of [1, 2, 3, 4, 5, 63, 257, 1027]) {
      const data = [1, 2].map((seed) => seededArray("f32", size + 8, { seed: seed + size }));
      const results: Buffer[] = [];
      for (const offset of [0, 1, 2, 3, 4]) {
        const slices = data.map((array) => {
          const shifted = new Float32Array(size + 8).fill(7);
          shifted.set(array.subarray(0, size), offset);
          return { ...upload(backend, shifted), byteOffset: 4 * offset, length: size };
        });
        backend.launch({ kind: "rule", kernel, tensors: [slices], scalars: [0.25, skip] });
        const whole = await download(backend, { ...slices[0]!, byteOffset: 0, length: size + 8 });
        expect([...whole.subarray(0, offset), ...whole.subarray(offset + size)].every((x) => x === 7)).toBe(true);
        results.push(Buffer.from(whole.slice(offset, offset + size).buffer));
      }
      for (const result of results) expect(Buffer.compare(result, results[0]!)).toBe(0);
    }
  });

  it("comes round in more lists of tensors than it keeps tables", async () => {
    const backend = await open();
    const rule = defineRule({
      name: "count",
      buffers: ["x"],
      scalars: ["by"],
      update: ({ x }, { by }) => ({ x: fma(by, 1, x) }),
    });
    const kernel = backend.kernel({ kind: "rule", rule, dtype: "f32" });
    const lists = Array.from({ length: 13 }, (_, i) =>
      Array.from({ length: 3 }, (_, t) => [upload(backend, new Float32Array(5 + t).fill(100 * i))]),
    );
    const used: number[] = [];
    for (let round = 1; round <= 3; round++) {
      // The order changes, so that some tables are found again and others are not.
      for (const [i, tensors] of (round === 2 ? lists.toReversed() : lists).entries()) {
        const list = round === 2 ? lists.length - 1 - i : i;
        backend.launch({ kind: "rule", kernel, tensors, scalars: [list + 1] });
      }
      used.push(backend.counters.used);
    }
    for (const [i, tensors] of lists.entries()) {
      for (const [slice] of tensors) expect(new Set(await download(backend, slice!))).toEqual(new Set([103 * i + 3]));
    }
    expect(used).toEqual([used[0], used[0], used[0]]);
  });

  it("says that the device is lost, and init opens another", async () => {
    const device = await init("webgpu");
    const weight = parameter([1, 2]);
    const backend = device.backend as WebGpuBackend;
    const reading = weight.data();
    backend.device.destroy();
    await backend.device.lost;
    await reading.catch((error) => expect((error as OptError).code).toBe("DEVICE_LOST"));
    await expectCode("DEVICE_LOST", () => weight.data());
    await expectCode("DEVICE_LOST", () => device.sync());
    await expectCode("DEVICE_LOST", () => tensor([1]));
    weight.dispose();
    const next = await init("webgpu");
    expect(next).not.toBe(device);
    expect([...(await parameter([3, 4]).data())]).toEqual([3, 4]);
  });
});

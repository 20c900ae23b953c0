/** The device as its users meet it: prepared launches, tables, staging, reads beside the event loop, the order of streams. */
import { AdamW } from "@opt/adam-amsgrad";
import { init, type OptError, registerBackend, tensor, tidy } from "@opt/core";
import { interpretRule, type Slice, type TypedArray } from "@opt/core/backend";
import { expectCode, seededBuffers, seededScalars } from "@opt/testkit";
import { everyOp, unbuilt } from "@opt/testkit/built-rules";
import { afterAll, describe, expect, it } from "vitest";
import type { CudaBackend } from "../src/backend";

/** `reason`: why it does not open here. */
interface Row {
  readonly name: string;
  readonly open: () => CudaBackend;
  readonly reason: string | undefined;
}

const bytesOf = (array: TypedArray) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);

const titleOf = ({ name, reason }: Row) => `${name}${reason === undefined ? "" : ` (skipped: ${reason})`}`;

async function floats(backend: CudaBackend, { memory, length }: Slice): Promise<Float32Array> {
  return new Float32Array((await backend.read(memory, 0, length * 4)).buffer);
}

function uploadTo(backend: CudaBackend, array: Float32Array): Slice {
  const memory = backend.allocate(array.byteLength);
  backend.write(memory, 0, bytesOf(array));
  return { memory, byteOffset: 0, length: array.length };
}

export function deviceSuite(row: Row): void {
  describe.skipIf(row.reason)(titleOf(row), () => {
    const backend = row.reason === undefined ? row.open() : undefined!;
    afterAll(() => backend?.close());

    const upload = (array: Float32Array) => uploadTo(backend, array);

    const rule = () => {
      const arrays = seededBuffers(everyOp, { size: 1027, seed: 3, dtype: "f32" }) as Float32Array[];
      const slices = arrays.map(upload);
      const kernel = backend.kernel({ kind: "rule", rule: everyOp, dtype: "f32" });
      const launch = (scalars: number[]) => ({ kind: "rule", kernel, tensors: [slices], scalars }) as const;
      const start = (scalars: number[]) => backend.launch(launch(scalars));
      const expectAfter = async (all: readonly number[][]) => {
        for (const scalars of all) interpretRule(everyOp.program, "f32", arrays, scalars);
        for (const [b, slice] of slices.entries()) expect(await floats(backend, slice)).toAgreeWith(arrays[b]!);
      };
      return { slices, launch, start, expectAfter };
    };

    it("runs prepared launches with new scalars, bit for bit", async () => {
      const { launch, expectAfter } = rule();
      const [first, second, third] = [4, 5, 6].map((seed) => seededScalars(everyOp, seed));
      const list = backend.prepare([launch(first!)], []);
      await expectAfter([]);
      list.run(new Map(), []);
      list.run(new Map([[0, second!]]), []);
      list.run(new Map([[0, third!]]), []);
      await expectAfter([first!, second!, third!]);
      expectCode("INTERNAL", () => list.run(new Map([[0, [1]]]), []));
      list.dispose();
      expectCode("DISPOSED", () => list.run(new Map(), []));
    });

    it("runs them on other memory in each run where it is left open, also from another place on", async () => {
      const { launch, expectAfter } = rule();
      const scalars = seededScalars(everyOp, 4);
      const { tensors } = launch(scalars);
      const traced = everyOp.buffers.map(() => backend.allocate(4 * 1027));
      const open = traced.map((memory) => ({ memory, byteOffset: 0, length: 1027 }));
      const list = backend.prepare([{ ...launch(scalars), tensors: [open] }], traced);
      const places = tensors[0]!.map(({ memory }) => ({ memory, byteOffset: 0 }));
      for (let i = 0; i < 2; i++) list.run(new Map(), places);
      await expectAfter([scalars, scalars]);
      const shifted = everyOp.buffers.map(() => upload(Float32Array.from({ length: 1031 }, (_, i) => Math.cos(i))));
      const kept = everyOp.buffers.map(() => upload(Float32Array.from({ length: 1027 }, (_, i) => Math.cos(i + 4))));
      list.run(
        new Map(),
        shifted.map(({ memory }) => ({ memory, byteOffset: 16 })),
      );
      backend.launch({ ...launch(scalars), tensors: [kept] });
      for (const [b, slice] of shifted.entries()) {
        const numbers = await floats(backend, slice);
        expect(numbers.subarray(4)).toAgreeWith(await floats(backend, kept[b]!));
        expect(numbers.subarray(0, 4)).toAgreeWith(Float32Array.from({ length: 4 }, (_, i) => Math.cos(i)));
      }
      list.dispose();
    });

    it("keeps tables and scratch memory of prepared launches to them, whatever is launched beside", async () => {
      const own = upload(new Float32Array(300_000).fill(1));
      const output = upload(new Float32Array(1));
      const kernel = backend.kernel({ kind: "sumSquares", dtype: "f32" });
      const sum = { kind: "sumSquares", kernel, inputs: [own], output } as const;
      const list = backend.prepare([sum], []);
      for (let i = 0; i < 100; i++) {
        const other = upload(new Float32Array(300_000).fill(i));
        backend.launch({ ...sum, inputs: [other], output: upload(new Float32Array(1)) });
      }
      list.run(new Map(), []);
      expect([...(await floats(backend, output))]).toEqual([300_000]);
      list.dispose();
    });

    it("leaves the event loop free while it waits", async () => {
      const { slices, start } = rule();
      for (let step = 0; step < 2000; step++) start([0.1, 2]);
      let turns = 0;
      let waits = true;
      const turn = () => {
        turns++;
        if (waits) setImmediate(turn);
      };
      setImmediate(turn);
      await backend.read(slices[0]!.memory, 0, 4);
      waits = false;
      expect(turns).toBeGreaterThan(1);
    });

    const compiled = () => {
      try {
        return backend.kernel({ kind: "rule", rule: unbuilt, dtype: "f32" });
      } catch (error) {
        if ((error as OptError).code !== "UNSUPPORTED") throw error;
        return undefined;
      }
    };

    it("compiles a rule that no build knew", async ({ skip }) => {
      const kernel = compiled() ?? skip("NVRTC is not here");
      const [left, right] = [Float32Array.of(1, 2, 3), Float32Array.of(4, 5, 6)].map(upload);
      backend.launch({ kind: "rule", kernel, tensors: [[left!, right!]], scalars: [0.5] });
      expect([...(await floats(backend, left!))]).toEqual([2, 2.5, 3]);
      expect([...(await floats(backend, right!))]).toEqual([2, 3, 4]);
    });

    it("moves more bytes than one staging buffer", async () => {
      const bytes = new Uint8Array(2 ** 25 + 4099);
      for (let i = 0; i < bytes.length; i++) bytes[i] = i * 7 + (i >>> 16);
      const memory = backend.allocate(bytes.length);
      backend.write(memory, 0, bytes);
      const back = await backend.read(memory, 0, bytes.length);
      expect(Buffer.compare(back, bytes)).toBe(0);
      backend.free(memory);
    });

    it("takes no more memory after a thousand steps than after ten", async () => {
      registerBackend({ name: "cuda", rank: 40, load: async () => row.open() });
      const device = await init("cuda");
      const weights = tensor([1, 2, 3, 4], { device, requiresGrad: true });
      const optimizer = new AdamW([weights]);
      const own = (device as unknown as { backend: CudaBackend }).backend;
      const train = async (steps: number) => {
        for (let step = 0; step < steps; step++) {
          tidy(() => weights.mul(weights).sum().backward());
          optimizer.step();
          optimizer.zeroGrad();
          await device.sync();
        }
        return own.reserved();
      };
      const early = await train(10);
      expect(await train(1000)).toEqual(early);
      expect((await weights.data())[0]).toBeLessThan(1);
      await init("js");
    });
  });
}

export function orderSuite(row: Row): void {
  describe.skipIf(row.reason)(titleOf(row), () => {
    const backend = row.reason === undefined ? row.open() : undefined!;
    afterAll(() => backend?.close());
    const upload = (array: Float32Array) => uploadTo(backend, array);

    /** Lists of one tensor, or of many, to which `by` is added by launches that nobody waits for. */
    const counting = () => {
      const kernel = backend.kernel({ kind: "rule", rule: everyOp, dtype: "f32" });
      const list = (tensors: number) =>
        Array.from({ length: tensors }, () => everyOp.buffers.map(() => upload(ones())));
      const ones = () => new Float32Array(100).fill(1);
      const launch = (tensors: Slice[][]) => ({ kind: "rule", kernel, tensors, scalars: [0.5, 2] }) as const;
      const expectSteps = async (tensors: Slice[][], steps: number) => {
        const arrays = everyOp.buffers.map(ones);
        for (let step = 0; step < steps; step++) interpretRule(everyOp.program, "f32", arrays, [0.5, 2]);
        for (const slices of tensors) expect(await floats(backend, slices[0]!)).toAgreeWith(arrays[0]!);
      };
      return { list, launch, expectSteps };
    };

    it("writes the tables of prepared launches after the launches that read those blocks before", async () => {
      const { list, launch, expectSteps } = counting();
      const small = Array.from({ length: 64 }, () => list(1));
      const large = list(100);
      const prepared = list(1);
      await backend.sync();
      for (const tensors of small) backend.launch(launch(tensors));
      backend.launch(launch(large)); // the oldest table goes, its block is free
      const made = backend.prepare([launch(prepared)], []);
      for (const tensors of small) await expectSteps(tensors, 1);
      await expectSteps(large, 1);
      await expectSteps(prepared, 0);
      made.run(new Map(), []);
      await expectSteps(prepared, 1);
      made.dispose();
    });

    it("gives blocks of disposed launches out after their last run", async () => {
      const { list, launch, expectSteps } = counting();
      const [first, second, third] = [list(40), list(40), list(40)];
      await backend.sync();
      const made = backend.prepare([launch(first)], []);
      made.run(new Map(), []);
      made.dispose();
      const next = backend.prepare([launch(second)], []);
      next.run(new Map(), []);
      next.dispose();
      backend.launch(launch(third));
      await expectSteps(first, 1);
      await expectSteps(second, 1);
      await expectSteps(third, 1);
    });

    it("reads large memory as it was when asked, whatever is written and launched meanwhile", async () => {
      const length = 42 * 2 ** 20; // 168 MiB: six pieces through four blocks
      const array = new Float32Array(length);
      for (let i = 0; i < length; i++) array[i] = i;
      const slice = upload(array);
      const reading = backend.read(slice.memory, 8, slice.length * 4 - 8);
      const zeros = new Uint8Array(slice.length * 4);
      backend.write(slice.memory, 0, zeros);
      const bytes = await reading;
      expect(Buffer.compare(bytes, bytesOf(array.subarray(2)))).toBe(0);
      expect([...(await backend.read(slice.memory, slice.length * 4 - 4, 4))]).toEqual([0, 0, 0, 0]);
      expect(Buffer.compare(backend.readSync(slice.memory, 0, zeros.length), zeros)).toBe(0);
      backend.free(slice.memory);
    });
  });
}

// The first call and checked ones: their launches wait until the function has ended.
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import {
  arange,
  compile,
  type Device,
  gather,
  init,
  manualSeed,
  OptError,
  onGradient,
  parameter,
  randn,
  type Tensor,
  tensor,
} from "../index";

await init("js"); // loads the passes

/** A device that counts the most bytes that lived at once. */
function counting(reserves = true) {
  const device = new FakeDevice({ reserves });
  let [bytes, most] = [0, 0];
  const { backend } = device;
  const { allocate, free } = backend;
  Object.assign(backend, {
    sharesMemory: true,
    allocate(count: number) {
      bytes += count;
      most = Math.max(most, bytes);
      return allocate(count);
    },
    free(memory: { bytes: number }) {
      bytes -= memory.bytes;
      free(memory);
    },
  });
  const mostIn = (run: () => void) => {
    most = bytes;
    const before = bytes;
    run();
    return most - before;
  };
  return { device, mostIn, left: () => bytes };
}

/** Twelve layers of 4 KiB, whose results backward needs: tanh's are computed again by a trace with a budget. */
const SIZE = 1024;
function deep(device: Device, memory?: number) {
  const w = parameter(
    Float32Array.from({ length: SIZE }, (_, i) => Math.sin(i)),
    { device },
  );
  const step = compile(
    (x: Tensor) => {
      let y = x;
      for (let i = 0; i < 12; i++) y = y.mul(w).tanh();
      const loss = y.sum();
      loss.backward();
      w.set(w.sub(w.grad!.mul(0.1)));
      w.grad = null;
      return loss;
    },
    memory === undefined ? {} : { memory },
  );
  return { w, step };
}

describe("a compiled call", () => {
  it("needs no more memory the first time, and when it is checked, than later", () => {
    const { device, mostIn } = counting();
    const { step } = deep(device);
    const x = tensor(new Float32Array(SIZE).fill(0.5), { device });
    const needs = [1, 2, 3, 4, 5].map(() => mostIn(() => step(x).dispose()));
    const { peakBytes, eager } = step.explain();
    expect(eager.peakBytes).toBeGreaterThan(1.5 * peakBytes);
    for (const most of needs) expect(most).toBeLessThanOrEqual(peakBytes + 1024); // and the result
  });

  it("runs as it is written where the device reserves nothing", () => {
    const { device, mostIn } = counting(false);
    const { step, w } = deep(device);
    const x = tensor(new Float32Array(SIZE).fill(0.5), { device });
    const other = counting();
    const same = deep(other.device);
    const y = tensor(new Float32Array(SIZE).fill(0.5), { device: other.device });
    const first = mostIn(() => expect(step(x).dataSync()).toEqual(same.step(y).dataSync()));
    expect(first).toBeGreaterThanOrEqual(step.explain().eager.peakBytes);
    for (let i = 0; i < 4; i++) expect(step(x).dataSync()).toEqual(same.step(y).dataSync());
    expect(w.dataSync()).toEqual(same.w.dataSync());
  });

  it("has done all of its work where its budget is too small", () => {
    const { device } = counting();
    const x = tensor(new Float32Array(SIZE).fill(0.5), { device });
    const [{ step, w }, plain] = [deep(device, 100), deep(device)];
    plain.step(x).dispose();
    expectCode("BAD_ARGUMENT", () => step(x));
    expect(w.dataSync()).toEqual(plain.w.dataSync());
  });

  it("has done what comes before an error of the function, and leaves no memory", () => {
    const { device, left } = counting();
    const w = parameter([1, 2], { device });
    const before = left();
    const step = compile(() => {
      w.set(w.mul(2));
      w.exp().sum().backward();
      throw new Error("halfway");
    });
    expect(() => step()).toThrow("halfway");
    expect(w.dataSync()).toEqual(Float32Array.of(2, 4));
    expect(w.grad!.dataSync()[0]).toBeCloseTo(Math.exp(2), 5);
    w.grad = null;
    expect(left()).toBe(before);
  });

  it("shows hooks what was computed, in each call", () => {
    const w = parameter([1, 2]);
    const seen: number[][] = [];
    onGradient(w, (leaf) => void seen.push([...leaf.grad!.dataSync()]));
    const step = compile((x: Tensor) => {
      w.mul(x).sum().backward();
      w.set(w.sub(w.grad!));
      w.grad = null;
    });
    for (let i = 1; i <= 6; i++) step(tensor([i, -i]));
    expect(seen).toEqual([1, 2, 3, 4, 5, 6].map((i) => [i, -i]));
    expect([...w.dataSync()]).toEqual([1 - 21, 2 + 21]);
  });

  it("checks indices that it makes itself, and goes on waiting", () => {
    const { device, mostIn, left } = counting();
    const table = parameter(
      Float32Array.from({ length: SIZE }, (_, i) => i),
      { device },
    );
    const start = tensor([0], { dtype: "i32", device });
    const body = (shift: Tensor) => {
      let y = gather(table, arange(4, { device, dtype: "i32" }).add(shift));
      for (let i = 0; i < 12; i++) y = y.reshape([4, 1]).add(table.exp()).sum(1);
      return y.sum();
    };
    const step = compile(body);
    const eager = body(start).dataSync();
    const before = left();
    const check = () => {
      const y = step(start);
      expect(y.dataSync()).toEqual(eager);
      y.dispose();
    };
    const needs = [1, 2, 3].map(() => mostIn(check));
    expect(Math.max(...needs)).toBeLessThanOrEqual(step.explain().peakBytes + 1024);
    step.dispose();
    expect(left()).toBe(before);
    expectCode("BAD_ARGUMENT", () => compile(body)(tensor([SIZE], { dtype: "i32", device })));
  });

  it("draws the numbers that the function would draw", () => {
    const x = tensor(new Float32Array(64).fill(1));
    const body = (x: Tensor) => x.mul(randn([64])).add(randn([64]));
    manualSeed(3);
    const eager = Array.from({ length: 9 }, () => body(x).dataSync());
    manualSeed(3);
    const step = compile(body);
    expect(eager.map(() => step(x).dataSync())).toEqual(eager);
  });

  it("writes host data into what the function disposes of", () => {
    const device = new FakeDevice();
    const [old, x] = [tensor([1, 2], { device }), tensor([3, 4], { device })];
    const step = compile((x: Tensor) => {
      const y = x.add(1);
      if (!old.isDisposed) {
        old.set([5, 6]);
        old.dispose();
      }
      return y.mul(2);
    });
    for (let i = 0; i < 5; i++) expect([...step(x).dataSync()]).toEqual([8, 10]);
  });

  it("gives back all memory when an allocation fails", () => {
    const { device, left } = counting();
    const w = parameter([1, 2], { device });
    const before = [left(), device.memory().bytes];
    const body = () => {
      const sum = w.exp().sum();
      sum.mul(sum).backward();
    };
    const step = compile(body);
    for (let allocations = 0; allocations < 2; allocations++) {
      const { allocate } = device.backend;
      let count = 0;
      device.backend.allocate = (bytes) => {
        if (bytes > 0 && count++ >= allocations) throw new OptError("OUT_OF_MEMORY", "fake", "no memory.");
        return allocate(bytes);
      };
      expectCode("OUT_OF_MEMORY", step);
      device.backend.allocate = allocate;
      w.grad = null;
      expect([left(), device.memory().bytes]).toEqual(before);
    }
    step();
    const grad = w.grad!.dataSync();
    w.grad = null;
    body();
    expect(grad).toEqual(w.grad!.dataSync());
  });
});

/** Closing a device, and what is said and done when its memory runs out. */
import { setImmediate } from "node:timers/promises";
import { expectCode } from "@opt/testkit";
import { afterEach, describe, expect, it, vi } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { Momentum } from "../../testing/momentum";
import type { Backend } from "../backend/backend";
import type { Memory } from "../backend/memory";
import { compile, OptError, parameter, type Tensor, tensor, tidy, traceAllocations, zeros } from "../index";
import { openJsBackend } from "../js/backend";
import { Device } from "./device";
import { Registry } from "./registry";

describe("a closed device", () => {
  /** What the backend keeps for prepared launches is gone with it. */
  async function open() {
    let isClosed = false;
    const prepare = () => ({ run() {}, dispose: () => expect(isClosed).toBe(false) });
    const close = () => {
      isClosed = true;
    };
    const registry = new Registry();
    registry.register({
      name: "some",
      rank: 1,
      load: async () => Object.assign(openJsBackend(), { name: "some", prepare, close }),
    });
    const device = await registry.init("some");
    const w = parameter([1, 2], { device });
    const optimizer = new Momentum([w], { lr: 0.1 });
    const step = () => {
      optimizer.zeroGrad();
      w.mul(w).sum().backward();
      optimizer.step();
    };
    const compiled = compile(step);
    for (let i = 0; i < 3; i++) compiled();
    return { registry, device, w, optimizer, step, compiled };
  }

  it("rejects what is done with its tensors, by name", async () => {
    const { device, w, step, compiled } = await open();
    await device.close();
    for (const use of [
      () => w.add(1),
      () => w.dataSync(),
      () => w.data(),
      () => w.set([3, 4]),
      () => w.detach().to("js"),
      () => tensor([1], { device }),
      () => compiled(),
      () => device.sync(),
      () => compile(() => w.add(1))(),
      step,
    ])
      await expectCode("DISPOSED", use as () => unknown);
    await expect(w.data()).rejects.toThrow('[some] the device was closed, and its tensors with it. await init("some")');
  });

  it("lets its tensors and compiled functions be disposed, and opens anew", async () => {
    const { registry, device, w, optimizer, compiled } = await open();
    await device.close();
    compiled.dispose();
    optimizer.dispose();
    w.dispose();
    expect([device.memory(), registry.defaultDevice.name]).toEqual([{ bytes: 0, tensors: 0 }, "js"]);
    const next = await registry.init("some");
    expect([next === device, ...tensor([5], { device: next }).dataSync()]).toEqual([false, 5]);
  });
});

describe("OUT_OF_MEMORY", () => {
  afterEach(() => traceAllocations(false));

  function exhaust(device: FakeDevice): OptError {
    device.allocationsLeft = 0;
    try {
      zeros([7], { device });
    } catch (error) {
      return error as OptError;
    }
    throw new Error("memory was there");
  }

  it("says how many tensors live and how to find who made them", () => {
    const device = new FakeDevice();
    const kept = [zeros([3], { device }), zeros([1000], { device })];
    const error = exhaust(device);
    expect([error instanceof OptError, error.code, error.where]).toEqual([true, "OUT_OF_MEMORY", "fake"]);
    const bytes = kept[0]!.size * 4 + kept[1]!.size * 4;
    expect(error.message).toBe(
      `[fake] cannot allocate 28 bytes. 2 tensors live on fake, ${bytes} bytes; dropped ones return at await device.sync(). ` +
        "traceAllocations() before would say who made the largest.",
    );
  });

  it("says who made the largest that lives, when that was asked for", () => {
    const device = new FakeDevice();
    traceAllocations();
    const makeLargest = () => zeros([1000], { device });
    const makeLarger = () => zeros([2000], { device });
    const kept = [zeros([3], { device }), makeLargest(), zeros([5], { device })];
    makeLarger().dispose();
    const { message } = exhaust(device);
    expect(message).toMatch(/The largest, of 4000 bytes, was made\n.*makeLargest.*device\.alone\.test\.ts/s);
    expect(kept).toHaveLength(3);
  });
});

/** A device whose memory is counted and is not there. */
function unseenDevice(): Device {
  const js = openJsBackend();
  const [few, read] = [js.allocate(8), js.read.bind(js)];
  const backend: Backend = Object.assign(openJsBackend(), {
    name: "unseen",
    allocate: (bytes: number) => ({ bytes }),
    free() {},
    write() {},
    launch() {},
    read: (_memory: Memory, _byteOffset: number, bytes: number) => read(few, 0, bytes),
  });
  return new Device("unseen", backend);
}

it.each([
  ["device.sync()", (device: Device) => device.sync()],
  ["x.item()", (_device: Device, x: Tensor) => x.item()],
  ["x.data()", (_device: Device, x: Tensor) => x.data()],
  ["a task of the loop's own", () => setImmediate()],
])("gives back under pressure what a loop drops that awaits %s", async (_name, wait) => {
  const device = unseenDevice();
  const x = zeros([1], { device });
  let most = 0;
  for (let step = 0; step < 200; step++) {
    zeros([2 ** 23], { device }); // 32 MiB, dropped
    most = Math.max(most, device.memory().bytes);
    await wait(device, x);
  }
  expect(most).toBeLessThan(2 ** 30);
});

it("collects no garbage in steps that free all that they make", () => {
  const device = unseenDevice();
  const collect = vi.fn();
  vi.stubGlobal("gc", collect);
  const makeMuch = () => {
    for (let i = 0; i < 32; i++) zeros([2 ** 23], { device }); // 1 GiB
  };
  tidy(makeMuch);
  const first = collect.mock.calls.length;
  for (let step = 0; step < 10; step++) tidy(makeMuch);
  vi.unstubAllGlobals();
  expect([first, collect.mock.calls.length]).toEqual([2, 2]);
});

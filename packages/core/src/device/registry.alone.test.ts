import { expectCode } from "@opt/testkit";
import { beforeEach, describe, expect, it, vi } from "vitest";
import type { BackendRegistration } from "../backend/backend";
import { OptError } from "../errors/errors";
import { openJsBackend } from "../js/backend";
import { Registry } from "./registry";

interface Fake extends BackendRegistration {
  readonly opened: number[];
  closed: number;
}

function fake(name: string, rank: number, unavailable?: Error, { several = false, software = false } = {}): Fake {
  const registration: Fake = {
    name,
    rank,
    several,
    opened: [],
    closed: 0,
    async load(index) {
      if (unavailable) throw unavailable;
      registration.opened.push(index);
      return Object.assign(openJsBackend(), { name, software, close: () => registration.closed++ });
    },
  };
  return registration;
}

const absent = (name: string) => new OptError("DEVICE_UNAVAILABLE", name, "there is no GPU.", "wasm serves instead.");

function registryWith(...registrations: BackendRegistration[]): Registry {
  const registry = new Registry();
  for (const registration of registrations) registry.register(registration);
  return registry;
}

const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
beforeEach(() => void warn.mockClear());

describe("init", () => {
  it("opens js where nothing is registered", async () => {
    const registry = registryWith();
    expect((await registry.init()).name).toBe("js");
    expect(await registry.init()).toBe(registry.defaultDevice);
  });

  it.each([
    ["None is imported.", registryWith()],
    ["[webgpu] there is no GPU. wasm serves instead.", registryWith(fake("webgpu", 30, absent("webgpu")))],
    ["[webgpu] is software.", registryWith(fake("webgpu", 30, undefined, { software: true }))],
  ])("warns once where js serves in the place of others: %s", async (reason, registry) => {
    await registry.init("js");
    expect(warn).not.toHaveBeenCalled();
    for (let i = 0; i < 2; i++) await registry.init();
    const cure = 'Import "@opt/kernels-wasm" before; init("js") asks for js.';
    expect(warn.mock.calls).toEqual([[`[init] a device faster than js should open, got js. ${reason} ${cure}`]]);
  });

  it("warns once why an imported cpu does not open, but not of a missing GPU", async () => {
    const noBinary = new OptError("DEVICE_UNAVAILABLE", "cpu", "its binary is not installed.", "Install it.");
    const registry = registryWith(fake("cuda", 40, absent("cuda")), fake("cpu", 20, noBinary), fake("wasm", 10));
    for (let i = 0; i < 2; i++) expect((await registry.init()).name).toBe("wasm");
    const text =
      '[init] a device faster than wasm should open, got wasm. [cpu] its binary is not installed. Install it. init("wasm") asks for wasm.';
    expect(warn.mock.calls).toEqual([[text]]);
  });

  it("opens the highest rank that opens, in whatever order they came", async () => {
    const registry = registryWith(fake("wasm", 10), fake("cuda", 40, absent("cuda")), fake("webgpu", 30));
    expect((await registry.init()).name).toBe("webgpu");
    expect(registry.defaultDevice.name).toBe("webgpu");
    expect(warn).not.toHaveBeenCalled();
  });

  it("opens what is named, once, also when asked twice at a time", async () => {
    const wasm = fake("wasm", 10);
    const registry = registryWith(wasm, fake("webgpu", 30));
    const [a, b] = await Promise.all([registry.init("wasm"), registry.init("wasm")]);
    expect([a === b, await registry.init("wasm"), wasm.opened]).toEqual([true, a, [0]]);
    expect(registry.get("wasm")).toBe(a);
  });

  it("counts devices of one kind by the number after the colon", async () => {
    const cuda = fake("cuda", 40, undefined, { several: true });
    const registry = registryWith(cuda);
    const [first, second] = [await registry.init("cuda"), await registry.init("cuda:1")];
    expect([first.name, second.name, cuda.opened]).toEqual(["cuda", "cuda:1", [0, 1]]);
  });

  it.each(["tpu", "cuda:one", "", "cuda:", "cuda:-1", "cuda:1.5", "cuda:0:0"])(
    "rejects the unknown device %j and keeps the default",
    async (name) => {
      const registry = registryWith(fake("cuda", 40), fake("wasm", 10));
      await registry.init("wasm");
      await expectCode("UNKNOWN_DEVICE", () => registry.init(name));
      expect(registry.defaultDevice.name).toBe("wasm");
    },
  );

  it("rejects a named device that does not open, and does not fall back", async () => {
    const registry = registryWith(fake("cuda", 40, absent("cuda")));
    await expectCode("DEVICE_UNAVAILABLE", () => registry.init("cuda"));
    await expectCode("DEVICE_UNAVAILABLE", () => registry.init("cuda")); // no stale promise
    expect(registry.defaultDevice.name).toBe("js");
  });

  it("is one device by each of its names", async () => {
    const cuda = fake("cuda", 40, undefined, { several: true });
    const registry = registryWith(cuda);
    const first = await registry.init("cuda");
    expect(await registry.init("cuda:0")).toBe(first);
    expect(registry.get("cuda:0")).toBe(first);
    const second = await registry.init("cuda:1");
    expect([await registry.init("cuda:01"), second.name, cuda.opened]).toEqual([second, "cuda:1", [0, 1]]);
  });

  it.each(["cpu:1", "js:1"])("rejects %s, of which there is one", async (name) => {
    const registry = registryWith(fake("cpu", 20));
    await expectCode("UNKNOWN_DEVICE", () => registry.init(name));
    expect((await registry.init(name.replace("1", "0"))).name).toBe(name.slice(0, -2));
  });

  it("rejects what is no name", async () => {
    for (const name of [null, 0, {}]) await expectCode("BAD_ARGUMENT", () => registryWith().init(name as never));
  });

  it("passes over a GPU that software imitates, unless it is named, and closes what it tried", async () => {
    const webgpu = fake("webgpu", 30, undefined, { software: true });
    const registry = registryWith(webgpu, fake("wasm", 10));
    expect([(await registry.init()).name, webgpu.closed]).toEqual(["wasm", 1]);
    const named = await registry.init("webgpu");
    expect([named.name, (await registry.init()).name, webgpu.closed]).toEqual(["webgpu", "wasm", 1]);
    expect(registry.get("webgpu")).toBe(named);
  });

  it("knows a missing device by the error's code, whichever copy of core made it", async () => {
    for (const code of ["DEVICE_UNAVAILABLE", "OUT_OF_MEMORY", "DEVICE_ERROR"]) {
      const foreign = Object.assign(new Error("not here"), { code });
      expect((await registryWith(fake("cuda", 40, foreign)).init()).name).toBe("js");
    }
    const wrong = new OptError("BAD_ARGUMENT", "wasm", "threads must be a positive integer, got NaN.");
    await expectCode("BAD_ARGUMENT", () => registryWith(fake("wasm", 10, wrong)).init());
  });

  it("does not take a bug in a backend for a missing device", async () => {
    await expect(registryWith(fake("cuda", 40, new TypeError("oops"))).init()).rejects.toThrow(TypeError);
  });
});

it("listDevices names every device, best first, and the reason of what is missing", async () => {
  const registry = registryWith(
    fake("wasm", 10),
    fake("cuda", 40, absent("cuda")),
    fake("cpu", 20, new Error("no addon")),
  );
  expect(await registry.list()).toEqual([
    { name: "cuda", available: false, reason: "[cuda] there is no GPU. wasm serves instead." },
    { name: "cpu", available: false, reason: "no addon" },
    { name: "wasm", available: true },
    { name: "js", available: true },
  ]);
  expect(registry.defaultDevice.name).toBe("js");
});

it("close frees the backend, and js is never closed", async () => {
  const wasm = fake("wasm", 10);
  const registry = registryWith(wasm);
  const first = await registry.init("wasm");
  await Promise.all([first.close(), first.close()]);
  await first.close();
  await registry.get("js").close();
  expect([wasm.closed, registry.defaultDevice.name]).toEqual([1, "js"]);
  expectCode("UNKNOWN_DEVICE", () => registry.get("wasm"));
  expect(await registry.init("wasm")).not.toBe(first);
});

it.each<[string, unknown]>([
  ["an upper-case name", { ...fake("x", 1), name: "WebGPU" }],
  ["a rank that is no number", { ...fake("x", 1), rank: "high" }],
  ["no load", { name: "x", rank: 1 }],
])("register rejects %s", (_, registration) => {
  expectCode("BAD_ARGUMENT", () => new Registry().register(registration as BackendRegistration));
});

it("two copies of core share one registry", async () => {
  const first = await import("./registry");
  vi.resetModules();
  const second = await import("./registry");
  expect(second.Registry).not.toBe(first.Registry);
  expect(second.registry).toBe(first.registry);
});

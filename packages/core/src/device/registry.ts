/** The registry through which devices meet core: importing a kernels package registers it, `init` opens it. */

import type { BackendRegistration } from "../backend/backend";
import { checkValue } from "../errors/check-value";
import { check, type ErrorCode } from "../errors/errors";
import { show } from "../errors/show";
import { openJsBackend } from "../js/backend";
import { Device } from "./device";
import { loadLater } from "./loaded-later";

export interface DeviceListing {
  readonly name: string;
  readonly available: boolean;
  /** Why not, when it is not. */
  readonly reason?: string;
}

export class Registry {
  readonly #registrations = new Map<string, BackendRegistration>();
  readonly #opening = new Map<string, Promise<Device>>();
  readonly #opened = new Map<string, Device>();
  readonly #js = new Device("js", openJsBackend());
  #current: Device = this.#js;
  #hasWarned = false;

  constructor() {
    this.#registrations.set("js", { name: "js", rank: 0, load: async () => this.#js.backend });
    this.#opened.set("js", this.#js);
  }

  /** The device of tensors made without one: js until `init` opens another. */
  get defaultDevice(): Device {
    return this.#current;
  }

  register(registration: BackendRegistration): void {
    const { name, rank, load } = registration;
    check(
      /^[a-z][a-z0-9]*$/.test(name) && typeof rank === "number" && typeof load === "function",
      "BAD_ARGUMENT",
      "registerBackend",
      () => `needs { name, rank, load }, got name ${show(name)}.`,
      "Names are lower-case words.",
    );
    if (name !== "js") this.#registrations.set(name, registration);
  }

  async init(name?: string): Promise<Device> {
    const opening = name === undefined ? this.#openBest() : this.#openNamed(name);
    [this.#current] = await Promise.all([opening, loadLater()]);
    return this.#current;
  }

  async list(): Promise<DeviceListing[]> {
    const listings = this.#byRank().map(async ({ name }): Promise<DeviceListing> => {
      try {
        await this.#openNamed(name);
        return { name, available: true };
      } catch (error) {
        return { name, available: false, reason: error instanceof Error ? error.message : String(error) };
      }
    });
    return Promise.all(listings);
  }

  /** An open device by its name. @throws OptError UNKNOWN_DEVICE if it is not open */
  get(name: string): Device {
    const device = this.#opened.get(this.#parse("device", name).name);
    check(
      device,
      "UNKNOWN_DEVICE",
      "device",
      () => `the device must be open (${[...this.#opened.keys()].join(", ")}), got "${name}".`,
      `Call await init("${name}") first.`,
    );
    return device;
  }

  #byRank(): BackendRegistration[] {
    return [...this.#registrations.values()].sort((a, b) => b.rank - a.rank);
  }

  async #openBest(): Promise<Device> {
    const passedOver = new Map<string, string>();
    for (const { name } of this.#byRank()) {
      const wasOpen = this.#opened.has(name);
      try {
        const device = await this.#openNamed(name);
        if (!device.backend.software) {
          this.#warn(name, passedOver);
          return device;
        }
        passedOver.set(name, `[${name}] is software.`);
        if (!wasOpen) await device.close();
      } catch (error) {
        // By its code, for it may be another copy's OptError.
        const { code = "", message } = error as { code?: string; message: string };
        if (!ABSENT.has(code)) throw error;
        passedOver.set(name, message);
      }
    }
    return this.#js;
  }

  /** Nobody asked for the slower device: a program may train on it for long. A machine may have no GPU, but it has a processor. */
  #warn(name: string, passedOver: ReadonlyMap<string, string>): void {
    if (this.#hasWarned || (name !== "js" && !passedOver.has("cpu"))) return;
    this.#hasWarned = true;
    const reasons =
      name === "js"
        ? `${[...passedOver.values()].join(" ") || "None is imported."} Import "@opt/kernels-wasm" before;`
        : passedOver.get("cpu");
    console.warn(
      `[init] a device faster than ${name} should open, got ${name}. ${reasons} init("${name}") asks for ${name}.`,
    );
  }

  async #openNamed(given: string): Promise<Device> {
    const { name, registration, index } = this.#parse("init", given);
    if (this.#opened.get(name)?.backend.lost) this.#opened.delete(name);
    const known = this.#opened.get(name) ?? this.#opening.get(name);
    if (known !== undefined) {
      await (await known).backend.load?.();
      return known;
    }
    const opening = this.#load(name, registration, index);
    this.#opening.set(name, opening);
    try {
      const device = await opening;
      this.#opened.set(name, device);
      return device;
    } finally {
      this.#opening.delete(name);
    }
  }

  async #load(name: string, registration: BackendRegistration, index: number): Promise<Device> {
    const device = new Device(name, await registration.load(index), () => {
      if (this.#opened.get(name) === device) this.#opened.delete(name);
      if (this.#current === device) this.#current = this.#js;
    });
    return device;
  }

  #advice(base: string): string {
    const lower = base.toLowerCase();
    if (this.#registrations.has(lower)) return `Did you mean "${lower}"?`;
    return "Import its package first: @opt/kernels-wasm, -cpu, -webgpu or -cuda.";
  }

  /** A device has one name: "cuda:0" is "cuda". @throws OptError BAD_ARGUMENT, UNKNOWN_DEVICE */
  #parse(where: string, given: string): { name: string; registration: BackendRegistration; index: number } {
    check(typeof given === "string", "BAD_ARGUMENT", where, () => `a device is named by a string, got ${show(given)}.`);
    const [, base, digits = "0"] = /^([^:]*)(?::(\d+))?$/.exec(given) ?? [];
    const registration = this.#registrations.get(base ?? "");
    const names = () => this.#byRank().map((known) => known.name);
    check(
      registration,
      "UNKNOWN_DEVICE",
      where,
      () => `the device must be one of ${names().join(", ")}, got "${given}".`,
      this.#advice(base ?? given),
    );
    const index = Number(digits);
    check(
      index === 0 || registration.several,
      "UNKNOWN_DEVICE",
      where,
      () => `there is one device "${base}", got "${given}".`,
      `Call it "${base}".`,
    );
    return { name: index === 0 ? registration.name : `${base}:${index}`, registration, index };
  }
}

/** What `init()` without a name passes over: the device is not here, or it has no room or strength left. */
const ABSENT: ReadonlySet<string> = new Set<ErrorCode>([
  "DEVICE_UNAVAILABLE",
  "DEVICE_ERROR",
  "DEVICE_LOST",
  "OUT_OF_MEMORY",
]);

/** One registry per process or page, shared by every copy of core that is loaded. */
const shared = globalThis as { [key: symbol]: Registry | undefined };
const key = Symbol.for("@opt/core.registry");
shared[key] ??= new Registry();
export const registry: Registry = shared[key];

/** Makes a backend known. Kernels packages call it when they are imported. @throws OptError BAD_ARGUMENT */
export function registerBackend(registration: BackendRegistration): void {
  registry.register(registration);
}

/**
 * Opens a device and makes it the default. Without a name: the highest-ranked registered one that opens. A GPU that software only
 * imitates is passed over, and opens by its name. One warning says why if js serves, or a slower device than an imported "cpu".
 * `await device.close()` gives it back.
 *
 * @throws OptError UNKNOWN_DEVICE if no imported package registered the name, or has no device of that number;
 * DEVICE_UNAVAILABLE if it does not open here.
 * @example
 * import "@opt/kernels-wasm";
 * const device = await init(); // "wasm"
 */
export function init(name?: string): Promise<Device> {
  return registry.init(name);
}

/** Every registered device, best first, and whether it opens here. Never throws: what does not open is listed with the reason. */
export function listDevices(): Promise<DeviceListing[]> {
  return registry.list();
}

/** The device that is meant: itself, an open one by its name, or the default. @throws OptError UNKNOWN_DEVICE, BAD_ARGUMENT */
export function deviceOf(where: string, device: unknown): Device {
  if (device === undefined) return registry.defaultDevice;
  if (typeof device === "string") return registry.get(device);
  const isDevice = typeof (device as Device | null)?.launch === "function";
  const advice = `For example "cpu".`;
  checkValue(isDevice, where, "device", "a Device or its name", device, advice);
  return device as Device;
}

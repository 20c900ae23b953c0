/** The registry through which devices meet core: importing a kernels package registers it, `init` opens it. */

import type { BackendRegistration } from "./backend/backend";
import { Device } from "./device";
import { OptError } from "./errors";
import { openJsBackend } from "./js/backend";

export interface DeviceListing {
  readonly name: string;
  readonly available: boolean;
  /** Why not, when it is not. */
  readonly reason?: string;
}

export class Registry {
  private readonly registrations = new Map<string, BackendRegistration>();
  private readonly opening = new Map<string, Promise<Device>>();
  private readonly opened = new Map<string, Device>();
  private readonly js = new Device("js", openJsBackend());
  private current: Device = this.js;

  constructor() {
    this.registrations.set("js", { name: "js", rank: 0, load: async () => this.js.backend });
    this.opened.set("js", this.js);
  }

  /** The device of tensors made without one: js until `init` opens another. */
  get defaultDevice(): Device {
    return this.current;
  }

  register(registration: BackendRegistration): void {
    const { name, rank, load } = registration;
    if (!/^[a-z][a-z0-9]*$/.test(name) || typeof rank !== "number" || typeof load !== "function") {
      throw new OptError(
        "BAD_ARGUMENT",
        "registerBackend",
        `needs { name, rank, load }, got name ${JSON.stringify(name)}.`,
        "Names are lower-case words.",
      );
    }
    if (this.registrations.has(name) && name === "js") return;
    this.registrations.set(name, registration);
  }

  async init(name?: string): Promise<Device> {
    this.current = name === undefined ? await this.openBest() : await this.openNamed(name);
    return this.current;
  }

  async list(): Promise<DeviceListing[]> {
    const listings = this.byRank().map(async ({ name }): Promise<DeviceListing> => {
      try {
        await this.openNamed(name);
        return { name, available: true };
      } catch (error) {
        return { name, available: false, reason: error instanceof Error ? error.message : String(error) };
      }
    });
    return Promise.all(listings);
  }

  /** An open device by its name. @throws OptError UNKNOWN_DEVICE if it is not open */
  get(name: string): Device {
    const device = this.opened.get(name);
    if (device === undefined) {
      const names = [...this.opened.keys()].join(", ");
      throw new OptError(
        "UNKNOWN_DEVICE",
        "device",
        `the device must be open (${names}), got "${name}".`,
        `Call await init("${name}") first.`,
      );
    }
    return device;
  }

  /** Closes a device, so that the next `init` opens a new one. Its tensors must not be used again. */
  async close(name: string): Promise<void> {
    const device = this.opened.get(name);
    if (device === undefined || device === this.js) return;
    this.opened.delete(name);
    if (this.current === device) this.current = this.js;
    await device.sync().catch(() => {}); // a lost device cannot finish its work
    device.backend.close();
  }

  private byRank(): BackendRegistration[] {
    return [...this.registrations.values()].sort((a, b) => b.rank - a.rank);
  }

  private async openBest(): Promise<Device> {
    for (const { name } of this.byRank()) {
      try {
        return await this.openNamed(name);
      } catch (error) {
        if (!(error instanceof OptError)) throw error; // a device that is merely absent says so with an OptError
      }
    }
    return this.js;
  }

  private async openNamed(name: string): Promise<Device> {
    if (this.opened.get(name)?.backend.lost) this.opened.delete(name);
    const known = this.opened.get(name) ?? this.opening.get(name);
    if (known !== undefined) return known;
    const opening = this.load(name);
    this.opening.set(name, opening);
    try {
      const device = await opening;
      this.opened.set(name, device);
      return device;
    } finally {
      this.opening.delete(name);
    }
  }

  private async load(name: string): Promise<Device> {
    const [base, suffix] = name.split(":");
    const registration = this.registrations.get(base!);
    if (registration === undefined || (suffix !== undefined && !/^\d+$/.test(suffix))) {
      const names = this.byRank().map((known) => known.name);
      throw new OptError(
        "UNKNOWN_DEVICE",
        "init",
        `the device must be one of ${names.join(", ")}, got "${name}".`,
        `Import its package first, for example import "@opt/kernels-${base}".`,
      );
    }
    return new Device(name, await registration.load(Number(suffix ?? 0)));
  }
}

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
 * Opens a device and makes it the default. Without a name: the highest-ranked registered one that opens (js always does).
 *
 * @throws OptError UNKNOWN_DEVICE if no imported package registered the name; DEVICE_UNAVAILABLE if it does not open here.
 * @example
 * import "@opt/kernels-wasm";
 * const device = await init(); // "wasm"
 */
export function init(name?: string): Promise<Device> {
  return registry.init(name);
}

/** Every registered device, best first, and whether it opens here. Never throws because hardware is absent. */
export function listDevices(): Promise<DeviceListing[]> {
  return registry.list();
}

/** Tests of tensors on every device that is registered: `await eachDevice((device) => { it(...) })`. */
import { type Device, init, listDevices } from "@opt/core";
import { describe, it } from "vitest";

/** Devices that have the bits of js. */
export const EXACT_DEVICES: readonly string[] = ["js", "wasm", "cpu"];

/**
 * Registers the tests once for each device that opens; the others show as skipped, with the reason.
 *
 * @param names only these devices; by default, all that are registered
 */
export async function eachDevice(register: (device: Device) => void, names?: readonly string[]): Promise<void> {
  for (const { name, available, reason } of await listDevices()) {
    if (names?.includes(name) === false) continue;
    if (available) {
      const device = await init(name);
      describe(`on ${name}`, () => register(device));
    } else {
      describe(`on ${name} (skipped: ${reason})`, () => it("computes as js does", ({ skip }) => skip(reason)));
    }
  }
  await init("js");
}

/** Tests of tensors on every device that is registered: `await eachDevice((device) => { it(...) })`. */
import { type Device, init, listDevices } from "@opt/core";
import { describe, it } from "vitest";

/** Registers the tests once for each device that opens; the others show as skipped, with the reason. */
export async function eachDevice(register: (device: Device) => void): Promise<void> {
  for (const { name, available, reason } of await listDevices()) {
    if (available) {
      const device = await init(name);
      describe(`on ${name}`, () => register(device));
    } else {
      describe(`on ${name} (skipped: ${reason})`, () => it("computes as js does", ({ skip }) => skip(reason)));
    }
  }
  await init("js");
}

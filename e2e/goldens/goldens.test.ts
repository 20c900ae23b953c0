/** The optimizers against PyTorch's numbers, bit for bit, on every exact device that opens beside js. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { init, listDevices } from "@opt/core";
import { EXACT_DEVICES, goldenSuite } from "@opt/testkit";
import { optimizerClasses } from "@opt/testkit/optimizers";
import { describe, it } from "vitest";

for (const { name, available, reason } of await listDevices()) {
  if (name === "js" || !EXACT_DEVICES.includes(name)) continue;
  if (available) goldenSuite({ name, optimizers: await optimizerClasses(), device: () => init(name) });
  else describe(`goldens on ${name} (skipped: ${reason})`, () => it("keeps to PyTorch's numbers", ({ skip }) => skip(reason)));
}

// Ops, layers and losses with rare arguments, on the devices that answer at once as js does: one call of four.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { sweepSuite } from "@opt/testkit";
import { describe } from "vitest";
import { opSweep } from "../../packages/core/testing/sweep";
import { layerSweep } from "../../packages/nn/testing/sweep";

const SWEEPS = { core: opSweep(), nn: layerSweep() };

for (const [name, sweep] of Object.entries(SWEEPS)) {
  const file = new URL(`../../packages/${name}/testing/goldens/sweep.json`, import.meta.url);
  describe(name, () => sweepSuite(file, sweep, { devices: ["wasm", "cpu"], every: 4 }));
}

/** A convolution that is imported after `init`: alone, because other tests load the kernels of ops. */
import { expectCode } from "@opt/testkit";
import { it } from "vitest";
import { WasmBackend } from "./backend";
import { LinearMemory } from "./memory/linear";
import { probeTarget } from "./target";

it("reports that the kernels of windows are not loaded", () => {
  const backend = new WasmBackend(new LinearMemory(false), probeTarget(false), undefined);
  const spec = { kind: "matmul", transposeA: false, transposeB: false, dtype: "f32" } as const;
  backend.kernel(spec);
  expectCode("DEVICE_UNAVAILABLE", () => backend.kernel({ ...spec, windows: true }));
});

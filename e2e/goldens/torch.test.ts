// Optimizers against PyTorch itself: 30 random configurations each, 200 steps, some without a gradient. OPT_TORCH_PYTHON names a Python that has it.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { type Device, init, listDevices } from "@opt/core";
import { runOptimizer, type TorchEnd, torchPython, torchRuns, withoutTorch } from "@opt/testkit";
import { beforeAll, describe, expect, it } from "vitest";
import { OPTIMIZERS, torchCases } from "./torch-cases";

const CASES = 30;

const available = (await listDevices()).filter((device) => device.available).map(({ name }) => name);
const devices = ["js", "wasm", "cpu"].filter((name) => available.includes(name));

/** Every configuration, in both dtypes. */
const cases = (["f32", "f64"] as const).flatMap((dtype) => torchCases(CASES, dtype));

let expected: TorchEnd[] = [];
beforeAll(() => {
  if (torchPython !== undefined) expected = torchRuns(cases);
});

describe.each(Object.keys(OPTIMIZERS))(`%s as PyTorch${withoutTorch}`, (name) => {
  const [Optimizer] = OPTIMIZERS[name]!;
  describe.each(["f32", "f64"] as const)("in %s", (dtype) => {
    it.skipIf(torchPython === undefined).each(devices)("on %s", async (on) => {
      const device: Device = await init(on);
      for (const [i, { name: own, dtype: in_, start, gradients, options }] of cases.entries()) {
        if (own !== name || in_ !== dtype) continue;
        const { trace, state } = await runOptimizer(Optimizer, { start, gradients, options, dtype, device });
        const ours = new Map(state).set("param", trace.at(-1)!);
        for (const [key, value] of expected[i]!) {
          const tolerance = dtype === "f32" ? "bits" : { absolute: 1e-12, relative: 1e-12 };
          const what = `${key} of ${JSON.stringify(options)}`;
          if (typeof value === "number") expect(ours.get(key), what).toBe(value);
          else expect(ours.get(key), what).toAgreeWith(value, tolerance);
        }
      }
    });
  });
});

/**
 * Muon against PyTorch on every device that opens: 30 random configurations, 200 steps. The momentum has PyTorch's bits. Where sums are
 * added in another order a bfloat16 of the orthogonal direction may be rounded the other way: weights are within a tenth of a step.
 * OPT_TORCH_PYTHON names a Python that has torch; without it the goldens judge.
 */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { init, listDevices } from "@opt/core";
import { Muon } from "@opt/muon";
import { muonGoldens, type OptimizerOptions, runOptimizer, sample, seededArray, type TorchEnd, torchPython, torchRuns, useSoftwareVulkan, withoutTorch } from "@opt/testkit";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";

useSoftwareVulkan();
const [CASES, STEPS] = [30, 200];

const real = (min: number, max: number) => fc.double({ min, max, noNaN: true });
const configuration = fc.record({
  shape: fc.tuple(fc.integer({ min: 1, max: 24 }), fc.integer({ min: 1, max: 24 })),
  dtype: fc.constantFrom("f32", "f64"),
  options: fc.record(
    {
      lr: real(1e-4, 0.1),
      weightDecay: fc.oneof(fc.constant(0), real(1e-4, 0.3)),
      momentum: real(0, 0.99),
      nesterov: fc.boolean(),
      nsSteps: fc.integer({ min: 0, max: 7 }),
      eps: fc.constantFrom(1e-7, 0.1),
      adjustLrFn: fc.constantFrom("original", "match_rms_adamw"),
    },
    { requiredKeys: ["lr"] },
  ),
});

const cases = fc.sample(configuration, { numRuns: CASES, seed: 13 }).map(({ shape, dtype, options }, i) => {
  const drawn = (n: number) => seededArray(dtype as "f32", shape[0] * shape[1], { seed: i * (STEPS + 1) + n });
  const gradients = Array.from({ length: STEPS }, (_, step) => drawn(step + 1));
  return { name: "Muon", shape, dtype: dtype as "f32" | "f64", options: options as OptimizerOptions, start: drawn(0), gradients };
});

/** A tenth of the learning rate, as it is for this matrix. */
function tenthOfStep([rows, columns]: readonly [number, number], { lr = 1e-3, adjustLrFn }: OptimizerOptions): number {
  const isScaled = adjustLrFn === "match_rms_adamw";
  return 0.1 * Number(lr) * (isScaled ? 0.2 * Math.sqrt(Math.max(rows, columns)) : Math.sqrt(Math.max(1, rows / columns)));
}

let expected: TorchEnd[] = [];
beforeAll(() => {
  if (torchPython !== undefined) expected = torchRuns(cases);
}, 120_000);

const available = (await listDevices()).filter((device) => device.available).map(({ name }) => name);

describe.each(["js", "wasm", "cpu", "webgpu"].filter((name) => available.includes(name)))("on %s", (on) => {
  it.skipIf(torchPython === undefined || on === "webgpu")(`is as PyTorch's${withoutTorch}`, { timeout: 120_000 }, async () => {
    const device = await init(on);
    for (const [i, { shape, dtype, options, ...run }] of cases.entries()) {
      const { trace, state } = await runOptimizer(Muon, { ...run, shape, dtype, options, device });
      const what = `${shape} ${dtype} ${JSON.stringify(options)}`;
      const bits = dtype === "f32" ? "bits" : { absolute: 1e-12, relative: 1e-12 };
      const ours = new Map(state).set("param", trace.at(-1)!);
      for (const [key, value] of expected[i]!) {
        const tolerance = key === "param" ? { absolute: tenthOfStep(shape, options), relative: 0 } : bits;
        expect(ours.get(key), `${key} of ${what}`).toAgreeWith(value, tolerance);
      }
    }
  });

  it("keeps to the goldens", async () => {
    const device = await init(on);
    for (const { shape, options, param, momentum, ...run } of on === "webgpu" ? sample(muonGoldens(), 2) : muonGoldens()) {
      const { trace, state } = await runOptimizer(Muon, { ...run, shape, options, device });
      const bits = on === "webgpu" ? { absolute: 1e-6, relative: 0 } : "bits";
      expect(state.get("momentum_buffer")).toAgreeWith(momentum, bits);
      expect(trace.at(-1)).toAgreeWith(param, { absolute: tenthOfStep(shape, options), relative: 0 });
    }
  });
});

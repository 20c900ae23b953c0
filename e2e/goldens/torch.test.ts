// Optimizers against PyTorch itself: 30 random configurations each, 200 steps, some without a gradient. OPT_TORCH_PYTHON names a Python that has it.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { Adadelta } from "@opt/adadelta";
import { Adagrad } from "@opt/adagrad";
import { Adamax } from "@opt/adamax";
import { ASGD } from "@opt/asgd";
import { type Device, init, listDevices } from "@opt/core";
import { RAdam } from "@opt/radam";
import { RMSprop } from "@opt/rmsprop";
import { Rprop } from "@opt/rprop";
import { SGD } from "@opt/sgd";
import { type OptimizerClass, type OptimizerOptions, runOptimizer, seededArray, type TorchEnd, torchPython, torchRuns, withoutTorch } from "@opt/testkit";
import fc from "fast-check";
import { beforeAll, describe, expect, it } from "vitest";

const [CASES, STEPS, SIZE] = [30, 200, 19];

const real = (min: number, max: number) => fc.double({ min, max, noNaN: true });
const perhaps = (arbitrary: fc.Arbitrary<number>) => fc.oneof(fc.constant(0), arbitrary);
const common = { lr: real(1e-4, 0.1), weightDecay: perhaps(real(1e-4, 0.3)), maximize: fc.boolean() };
const betas = fc.tuple(real(0, 0.98), real(0.3, 0.9999));
const eps = fc.constantFrom(1e-8, 1e-4, 0.1);
const arbitraries: Record<string, [OptimizerClass, fc.Arbitrary<OptimizerOptions>]> = {
  SGD: [
    SGD,
    fc.oneof(
      fc.record({ ...common, momentum: perhaps(real(0.1, 0.99)), dampening: perhaps(real(0, 0.9)) }),
      fc.record({ ...common, momentum: real(0.1, 0.99), nesterov: fc.constant(true) }),
    ),
  ],
  RMSprop: [
    RMSprop,
    fc.record({ ...common, eps, alpha: real(0.1, 0.999), momentum: perhaps(real(0, 0.9)), centered: fc.boolean() }),
  ],
  Adamax: [Adamax, fc.record({ ...common, eps, betas })],
  RAdam: [RAdam, fc.record({ ...common, eps, betas, decoupledWeightDecay: fc.boolean() })],
  Adagrad: [
    Adagrad,
    fc.record({ ...common, eps, lrDecay: perhaps(real(0, 0.5)), initialAccumulatorValue: perhaps(real(0, 2)) }),
  ],
  Adadelta: [Adadelta, fc.record({ ...common, lr: real(0.01, 2), eps, rho: real(0, 1) })],
  ASGD: [
    ASGD,
    fc.record({ ...common, lambd: perhaps(real(1e-4, 0.1)), alpha: real(0, 1), t0: fc.constantFrom(0, 20, 150, 1e6) }),
  ],
  Rprop: [
    Rprop,
    fc.record({
      lr: common.lr,
      maximize: common.maximize,
      etas: fc.tuple(real(0.1, 0.9), real(1.1, 2)),
      stepSizes: fc.tuple(real(1e-6, 1e-3), real(0.01, 10)),
    }),
  ],
};

const available = (await listDevices()).filter((device) => device.available).map(({ name }) => name);
const devices = ["js", "wasm", "cpu"].filter((name) => available.includes(name));

/** Every configuration, in both dtypes. */
const cases = Object.entries(arbitraries).flatMap(([name, [, options]], o) =>
  (["f32", "f64"] as const).flatMap((dtype) =>
    fc.sample(options, { numRuns: CASES, seed: 12 }).map((chosen, i) => {
      const drawn = (n: number) => seededArray(dtype as "f32", SIZE, { seed: (o * CASES + i) * (STEPS + 1) + n });
      const absent = (step: number) => (step * 7 + i) % 23 === 0;
      const gradients = Array.from({ length: STEPS }, (_, step) => (absent(step) ? null : drawn(step + 1)));
      return { name, dtype, options: chosen, start: drawn(0), gradients };
    }),
  ),
);

let expected: TorchEnd[] = [];
beforeAll(() => {
  if (torchPython !== undefined) expected = torchRuns(cases);
});

describe.each(Object.keys(arbitraries))(`%s as PyTorch${withoutTorch}`, (name) => {
  const [Optimizer] = arbitraries[name]!;
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

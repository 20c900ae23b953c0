/** Random configurations of PyTorch's optimizers, with gradients of which some are absent. */
import { Adadelta } from "@opt/adadelta";
import { Adagrad } from "@opt/adagrad";
import { Adam, AdamW } from "@opt/adam-amsgrad";
import { Adamax } from "@opt/adamax";
import { ASGD } from "@opt/asgd";
import { NAdam } from "@opt/nadam";
import { RAdam } from "@opt/radam";
import { RMSprop } from "@opt/rmsprop";
import { Rprop } from "@opt/rprop";
import { SGD } from "@opt/sgd";
import { type OptimizerClass, type OptimizerOptions, seededArray, type TorchRun } from "@opt/testkit";
import fc from "fast-check";

const [STEPS, SIZE] = [200, 19];

const real = (min: number, max: number) => fc.double({ min, max, noNaN: true });
const perhaps = (arbitrary: fc.Arbitrary<number>) => fc.oneof(fc.constant(0), arbitrary);
const common = { lr: real(1e-4, 0.1), weightDecay: perhaps(real(1e-4, 0.3)), maximize: fc.boolean() };
const betas = fc.tuple(real(0, 0.98), real(0.3, 0.9999));
const eps = fc.constantFrom(1e-8, 1e-4, 0.1);
export const OPTIMIZERS: Record<string, [OptimizerClass, fc.Arbitrary<OptimizerOptions>]> = {
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
  Adam: [Adam, fc.record({ ...common, eps, betas, amsgrad: fc.boolean() })],
  AdamW: [AdamW, fc.record({ ...common, eps, betas, amsgrad: fc.boolean() })],
  NAdam: [
    NAdam,
    fc.record({ ...common, eps, betas, momentumDecay: real(0.001, 0.1), decoupledWeightDecay: fc.boolean() }),
  ],
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

/** `count` configurations of each optimizer, in one dtype. The same seed gives the same. */
export function torchCases(count: number, dtype: "f32" | "f64", { seed = 12, steps = STEPS } = {}): TorchRun[] {
  return Object.entries(OPTIMIZERS).flatMap(([name, [, options]], o) =>
    fc.sample(options, { numRuns: count, seed }).map((chosen, i) => torchCase(name, dtype, chosen, o * count + i, steps)),
  );
}

/** A run with start and gradients of its own. */
export function torchCase(
  name: string,
  dtype: "f32" | "f64",
  options: OptimizerOptions,
  own: number,
  steps = STEPS,
): TorchRun {
  const drawn = (n: number) => seededArray(dtype as "f32", SIZE, { seed: own * (STEPS + 1) + n });
  const absent = (step: number) => (step * 7 + own) % 23 === 0;
  const gradients = Array.from({ length: steps }, (_, step) => (absent(step) ? null : drawn(step + 1)));
  return { name, dtype, options, start: drawn(0), gradients };
}

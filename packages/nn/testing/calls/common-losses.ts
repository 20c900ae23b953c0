/** Calls of the common losses, of which PyTorch knows the values and the gradients. */
import type { Tensor } from "@opt/core";
import type { TorchCall } from "@opt/testkit";
import {
  bceWithLogits,
  crossEntropy,
  huberLoss,
  klDiv,
  l1Loss,
  mseLoss,
  nllLoss,
  type Reduction,
} from "../../src/index";
import { python, RandomInputs } from "../random-inputs";

const REDUCTIONS: readonly Reduction[] = ["mean", "sum", "none"];

/** Each loss in `count` random configurations. */
export function commonLossCalls(count: number): TorchCall[] {
  const make = new RandomInputs(11);
  const calls: TorchCall[] = [];
  for (let i = 0; i < count; i++) configuration(make, i, calls);
  return calls;
}

function configuration(make: RandomInputs, i: number, calls: TorchCall[]): void {
  const dtype = i % 2 === 0 ? "f32" : "f64";
  const shape = Array.from({ length: make.between(1, 3) }, () => make.between(1, 4));
  const reduction = make.random.pick(REDUCTIONS);
  const pair = () => [make.numbers(shape, dtype), make.numbers(shape, dtype)];
  const add = (name: string, inputs: TorchCall["inputs"], code: string, run: TorchCall["run"]) =>
    calls.push({ name: `${i}: ${name}, ${reduction}, ${dtype}`, inputs, code, run, second: dtype === "f64" });
  const delta = make.random.pick([0.5, 1, 2.5]);
  add("l1Loss", pair(), `F.l1_loss(a, b, reduction="${reduction}")`, (a, b) => l1Loss(a, b, { reduction }));
  add("mseLoss", pair(), `F.mse_loss(a, b, reduction="${reduction}")`, (a, b) => mseLoss(a, b, { reduction }));
  add("huberLoss", pair(), `F.huber_loss(a, b, "${reduction}", ${delta})`, (a, b) =>
    huberLoss(a, b, { reduction, delta }),
  );

  const bce = [make.numbers(shape, dtype, { low: -30, high: 30 }), make.numbers(shape, dtype, { low: 0, high: 1 })];
  const extra = [
    make.numbers(shape.slice(-1), dtype, { requiresGrad: false }),
    make.numbers(shape.slice(-1), dtype, { low: 0, requiresGrad: false }),
  ];
  const [weighted, positive] = [make.flip(), make.flip()];
  add(
    "bceWithLogits",
    [...bce, ...extra],
    `F.binary_cross_entropy_with_logits(a, b, ${weighted ? "c" : "None"}, reduction="${reduction}", pos_weight=${positive ? "d" : "None"})`,
    (a, b, c, d) =>
      bceWithLogits(a, b, { reduction, ...(weighted && { weight: c }), ...(positive && { posWeight: d }) }),
  );

  const logTarget = make.flip();
  const batch = make.flip();
  add(
    `klDiv${batch ? " batchMean" : ""}${logTarget ? " of logarithms" : ""}`,
    [make.numbers(shape, dtype), make.numbers(shape, dtype, { low: logTarget ? -2 : 0.1 })],
    `F.kl_div(a, b, reduction="${batch ? "batchmean" : reduction}", log_target=${python(logTarget)})`,
    (a, b) => klDiv(a, b, { reduction: batch ? "batchMean" : reduction, logTarget }),
  );

  const classes = make.between(2, 5);
  const rest = shape.slice(1);
  const logits = make.numbers([shape[0]!, classes, ...rest], dtype);
  const counted = make.whole([shape[0]!, ...rest], classes, -100, i % 4 === 3 ? 1 : 0.2); // or all ignored
  const classWeight = make.numbers([classes], dtype, { low: 0.5, requiresGrad: false });
  const smoothing = make.random.pick([0, 0.1]);
  const factor = weighted ? "c" : "None";
  const given = (weight: Tensor) => ({ axis: 1, reduction, ...(weighted && { weight }) });
  add(
    `crossEntropy on axis 1, smoothed by ${smoothing}`,
    [logits, counted, classWeight],
    `F.cross_entropy(a, b.long(), ${factor}, reduction="${reduction}", label_smoothing=${smoothing})`,
    (a, b, c) => crossEntropy(a, b, { ...given(c), labelSmoothing: smoothing }),
  );
  add(
    `crossEntropy with probabilities, smoothed by ${smoothing}`,
    [logits, make.numbers(logits.shape, dtype, { low: 0, high: 1 }), classWeight],
    `F.cross_entropy(a, b, ${factor}, reduction="${reduction}", label_smoothing=${smoothing})`,
    (a, b, c) => crossEntropy(a, b, { ...given(c), labelSmoothing: smoothing }),
  );
  add(
    "nllLoss",
    [logits, counted, classWeight],
    `F.nll_loss(a, b.long(), ${factor}, reduction="${reduction}")`,
    (a, b, c) => nllLoss(a, b, given(c)),
  );
}

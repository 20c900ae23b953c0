// Laws of parameters and state in every format: `stateDType` in 16 and 8 bits, and `stochasticRounding`.
import { beforeAll, describe, expect, it } from "vitest";
import { type TrainedOptions, trained } from "../../../testing/trained";
import { compile } from "../../compile/compile";
import { tensor } from "../../create";
import { GradScaler } from "../../loss-scaling/scaler";
import type { DType } from "../../values/dtype";
import { clipGradNorm } from "../gradients/clip";
import { enableQ8 } from "./packed-state";
import { enableStochasticRounding } from "./stochastic-rounding";

beforeAll(() => {
  enableQ8();
  enableStochasticRounding();
});

/** Smaller parameters have no state in 8 bits. */
const SIZE = 4096 + 300;
const random = { seed: 9 };

describe.each<[DType, TrainedOptions]>([
  ...(["f32", "bf16", "f16"] as const).flatMap((dtype): [DType, TrainedOptions][] => [
    [dtype, { stateDType: "bf16" }],
    [dtype, { stateDType: "q8", averaged: true }],
  ]),
  ["bf16", { stochasticRounding: true }],
  ["f16", { stochasticRounding: random }],
  ["bf16", { stochasticRounding: random, stateDType: "bf16" }],
  ["bf16", { stochasticRounding: random, stateDType: "q8", clip: { value: 0.1 } }],
])("%s with %j", (dtype, options) => {
  const pair = (first = options, second = options) =>
    [trained(first, dtype, SIZE), trained(second, dtype, SIZE)] as const;

  it("takes one launch a step", () => {
    const { device, optimizer, train } = trained(options, dtype, SIZE);
    train(1);
    device.launches.length = 0;
    optimizer.step();
    expect(device.launches).toEqual(["rule"]);
  });

  it("is saved and resumed in its bits", () => {
    const [whole, resumed] = pair(options, { stateDType: options.stateDType });
    whole.train(3);
    resumed.train(2); // with state of its own
    resumed.optimizer.loadStateDict(whole.optimizer.stateDict());
    for (const name of ["w", "b"] as const) resumed[name].set(whole[name].dataSync());
    for (const each of [whole, resumed]) each.train(3);
    expect(resumed.words()).toEqual(whole.words());
  });

  it("is the same in compiled steps", () => {
    const [eager, compiled] = pair();
    for (const each of [eager, compiled]) each.train(1);
    const step = compile(() => compiled.optimizer.step());
    for (let i = 0; i < 4; i++) {
      step();
      eager.optimizer.step();
    }
    expect(compiled.words()).toEqual(eager.words());
  });

  it("stays as it was where the scaler skips a step", () => {
    const [even, skipped] = pair();
    const scaler = new GradScaler({ initScale: 4, backoffFactor: 0.5 });
    const step = (scale: number) => {
      scaler.scale(tensor(1, { device: skipped.device }));
      skipped.give(scale);
      scaler.step(skipped.optimizer);
      scaler.update();
    };
    step(4);
    const before = skipped.words();
    step(Number.POSITIVE_INFINITY);
    expect([skipped.words(), skipped.steps()]).toEqual([before, 1]);
    step(2);
    even.train(2);
    expect(skipped.words()).toEqual(even.words());
  });

  // clipGradNorm rounds gradients of 16 bits.
  it.skipIf(dtype !== "f32")("is stepped by gradients that clip.norm has shortened, as by clipGradNorm", () => {
    const [option, before] = pair({ ...options, clip: { ...options.clip, norm: 0.5 } });
    option.train(3);
    for (let i = 0; i < 3; i++) {
      before.give();
      clipGradNorm([before.w, before.b], 0.5).dispose();
      before.optimizer.step();
    }
    expect(option.words()).toEqual(before.words());
  });
});

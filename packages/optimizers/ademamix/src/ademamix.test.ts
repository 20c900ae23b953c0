import { parameter, tensor } from "@opt/core";
import { optaxGoldens, optimizerSuite, runOptimizer } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import * as exported from "./index";
import { AdEMAMix } from "./index";

optimizerSuite(exported, {
  AdEMAMix: {
    defaults: {
      lr: 1e-3,
      betas: [0.9, 0.999, 0.9999],
      alpha: 5,
      tAlpha: 0,
      tBeta3: 0,
      eps: 1e-8,
      weightDecay: 0,
      maximize: false,
    },
    wrong: {
      lr: [-1],
      betas: [
        [0.9, 0.999],
        [0.9, 0.999, 1],
      ],
      alpha: [-1],
      tAlpha: [-1],
      tBeta3: [Number.NaN],
      eps: [-1],
      weightDecay: [-1],
      amsgrad: [true],
    },
  },
});

it.each(optaxGoldens("AdEMAMix"))("near optax, $options", async ({ param, ...run }) => {
  const { trace } = await runOptimizer(AdEMAMix, run);
  expect(trace.at(-1)).toAgreeWith(param, { absolute: 1e-6, relative: 1e-5 });
});

describe("takes a plain loop's steps in float64", () => {
  it.each([
    { tAlpha: 0, tBeta3: 0 },
    { tAlpha: 100, tBeta3: 150 },
    { tAlpha: 300, tBeta3: 300 },
  ])("%o", async ({ tAlpha, tBeta3 }) => {
    const [lr, b1, b2, b3, alpha, eps, decay] = [0.01, 0.9, 0.99, 0.9995, 6, 1e-6, 0.1] as const;
    const w = parameter([1, -2, 3], { dtype: "f64" });
    const optimizer = new AdEMAMix([w], { lr, betas: [b1, b2, b3], alpha, tAlpha, tBeta3, eps, weightDecay: decay });
    const each = [1, -2, 3].map((p) => ({ p, fast: 0, slow: 0, squares: 0 }));
    for (let t = 1; t <= 200; t++) {
      const gradient = each.map((_, i) => Math.sin(t * (i + 1)));
      w.grad = tensor(gradient, { dtype: "f64" });
      optimizer.step();
      const alphaNow = t < tAlpha ? (alpha * t) / tAlpha : alpha;
      const [s, l1, l3] = [t / tBeta3, Math.log(b1), Math.log(b3)];
      const beta3 = t < tBeta3 ? Math.exp((l1 * l3) / ((1 - s) * l3 + s * l1)) : b3;
      each.forEach((x, i) => {
        const g = gradient[i]!;
        x.fast = b1 * x.fast + (1 - b1) * g;
        x.slow = beta3 * x.slow + (1 - beta3) * g;
        x.squares = b2 * x.squares + (1 - b2) * g * g;
        const mixed = x.fast / (1 - b1 ** t) + alphaNow * x.slow;
        x.p -= lr * (mixed / (Math.sqrt(x.squares / (1 - b2 ** t)) + eps) + decay * x.p);
      });
    }
    const expected = each.map(({ p }) => p);
    expect(await w.data()).toAgreeWith(expected, { absolute: 1e-12, relative: 1e-12 });
  });
});

it("starts the third beta anywhere, also where the first is 0", () => {
  const w = parameter([1]);
  const optimizer = new AdEMAMix([w], { betas: [0, 0.999, 0.5], tBeta3: 2 });
  w.grad = tensor([1]);
  optimizer.step();
  const slow = optimizer.stateDict().state["0"]!.exp_avg_slow;
  expect((slow as typeof w).dataSync()).toAgreeWith([0.75], { absolute: 1e-6, relative: 0 }); // 1 - 0.5^(1 / 0.5)
});

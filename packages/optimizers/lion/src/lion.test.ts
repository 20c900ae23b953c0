import { parameter, tensor } from "@opt/core";
import { optaxGoldens, optimizerSuite, runOptimizer } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Lion } from "./index";

optimizerSuite(exported, {
  Lion: {
    defaults: { lr: 1e-4, betas: [0.9, 0.99], weightDecay: 0, maximize: false },
    wrong: { lr: [-1], betas: [[0.9, 1], [0.9]], weightDecay: [-1], eps: [1e-8] },
  },
});

it.each(optaxGoldens("Lion"))("optax's bits, $options", async ({ param, ...run }) => {
  const { trace } = await runOptimizer(Lion, run);
  expect(trace.at(-1)).toAgreeWith(param, "bits");
});

it("takes a plain loop's steps in float64", async () => {
  const w = parameter([1, -2, 3], { dtype: "f64" });
  const optimizer = new Lion([w], { lr: 0.1, weightDecay: 0.5 });
  let p = [1, -2, 3];
  let m = [0, 0, 0];
  for (let t = 1; t <= 200; t++) {
    const gradient = p.map((_, i) => Math.sin(t * (i + 1)));
    w.grad = tensor(gradient, { dtype: "f64" });
    optimizer.step();
    p = p.map((x, i) => x - 0.1 * (Math.sign(0.9 * m[i]! + 0.1 * gradient[i]!) + 0.5 * x));
    m = m.map((x, i) => 0.99 * x + 0.01 * gradient[i]!);
  }
  expect(await w.data()).toAgreeWith(p, { absolute: 1e-12, relative: 1e-12 });
});

it("leaves elements alone whose direction is 0 or NaN", () => {
  const w = parameter([1, 2]);
  w.grad = tensor([0, Number.NaN]);
  new Lion([w], { lr: 0.1 }).step();
  expect([...w.dataSync()]).toEqual([1, 2]);
});

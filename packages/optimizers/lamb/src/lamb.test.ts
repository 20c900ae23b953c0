import { compile, functional, parameter, tensor } from "@opt/core";
import { expectCode, optaxGoldens, optimizerSuite, runOptimizer } from "@opt/testkit";
import { expect, it } from "vitest";
import * as exported from "./index";
import { Lamb } from "./index";

optimizerSuite(exported, {
  Lamb: {
    defaults: { lr: 1e-3, betas: [0.9, 0.999], eps: 1e-6, weightDecay: 0, maximize: false },
    wrong: { lr: [-1], betas: [[0.9, 1], [0.9]], eps: [-1], weightDecay: [Number.NaN], amsgrad: [true] },
  },
});

it.each(optaxGoldens("Lamb"))("near optax, $options", async ({ param, ...run }) => {
  const { trace } = await runOptimizer(Lamb, run);
  expect(trace.at(-1)).toAgreeWith(param, { absolute: 1e-6, relative: 1e-5 });
});

const norm = (values: readonly number[]) => Math.hypot(...values);

it("takes a plain loop's steps in float64, each parameter by its own norm", async () => {
  const [lr, b1, b2, eps, decay] = [0.02, 0.8, 0.99, 1e-4, 0.1] as const;
  const each = [
    [1, -2, 3],
    [0, 0],
    [-0.5, 0.25, 4, 1e-3],
  ].map((p) => ({ p, m: p.map(() => 0), v: p.map(() => 0) }));
  const params = each.map(({ p }) => parameter([...p], { dtype: "f64" }));
  const optimizer = new Lamb(params, { lr, betas: [b1, b2], eps, weightDecay: decay });
  for (let t = 1; t <= 200; t++) {
    for (const [k, x] of each.entries()) {
      const gradient = x.p.map((_, i) => Math.sin(t * (i + 1) + k));
      params[k]!.grad = tensor(gradient, { dtype: "f64" });
      x.m = x.m.map((m, i) => b1 * m + (1 - b1) * gradient[i]!);
      x.v = x.v.map((v, i) => b2 * v + (1 - b2) * gradient[i]! ** 2);
      const u = x.p.map((p, i) => x.m[i]! / (1 - b1 ** t) / (Math.sqrt(x.v[i]! / (1 - b2 ** t)) + eps) + decay * p);
      const ratio = norm(x.p) > 0 && norm(u) > 0 ? norm(x.p) / norm(u) : 1;
      x.p = x.p.map((p, i) => p - lr * ratio * u[i]!);
    }
    optimizer.step();
  }
  for (const [k, { p }] of each.entries()) {
    expect(await params[k]!.data()).toAgreeWith(p, { absolute: 1e-12, relative: 1e-12 });
  }
});

it("steps a parameter of zeros by lr, and leaves one alone whose direction is 0", () => {
  const [zero, still] = [parameter([0, 0]), parameter([1, 2])];
  zero.grad = tensor([3, -4]);
  still.grad = tensor([0, 0]);
  new Lamb([zero, still], { lr: 0.5 }).step();
  expect(zero.dataSync()).toAgreeWith([-0.5, 0.5], { absolute: 1e-6, relative: 0 });
  expect(still.tolist()).toEqual([1, 2]);
});

it("takes one launch a parameter, and five for all", () => {
  const params = [1, 2, 3, 4].map((n) => parameter(new Float32Array(n)));
  for (const param of params) param.grad = tensor(new Float32Array(param.size));
  const optimizer = new Lamb(params);
  const step = compile(() => optimizer.step());
  for (let i = 0; i < 3; i++) step();
  expect(step.explain().launches).toBe(5 + params.length);
});

it("is neither differentiated through nor stepped by rows", () => {
  expectCode("UNSUPPORTED", () => functional(Lamb));
  expectCode("UNSUPPORTED", () => new Lamb([parameter([1])], { lazyMode: true }));
});

// Gradients of gradients: every op against finite differences in float64.
import { DIFFERENTIABLE_OPS, gradCheck, inputsOf, sample, triesAll } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { grad } from "../autograd";
import { parameter, tensor } from "../create";
import { enableGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { concat, crossEntropyRows } from "./index";

/** Every element squared, with weights of its own: the gradients of linear ops depend on their inputs, too. */
function weighted(output: Tensor): Tensor {
  const weights = Float64Array.from({ length: output.size }, (_, i) => Math.sin(i + 1));
  return output
    .mul(output)
    .mul(tensor(weights, { shape: output.shape }))
    .sum();
}

describe("the gradient of the gradient of", () => {
  it.each(sample(DIFFERENTIABLE_OPS, 3))("$name", async ({ run, ...op }) => {
    const inputs = inputsOf({ run, ...op }).map(({ values, shape }) => tensor(values, { shape }));
    const gradients = (...xs: Tensor[]) =>
      enableGrad(() => {
        const found = grad(weighted(run(...xs)), xs, { createGraph: true });
        const slopes = concat(found.map((g) => g.reshape([g.size])));
        // Constant ones, as of x^0, have no graph.
        return slopes.requiresGrad ? slopes : slopes.add(xs[0]!.sum().mul(0));
      });
    const tolerance = { absolute: 1e-6, relative: 1e-5 };
    await gradCheck(gradients, inputs, triesAll ? { tolerance } : { tolerance, directions: 2 });
  });

  it.each(DIFFERENTIABLE_OPS)("$name: the first gradients are those without a graph", ({ run, ...op }) => {
    const inputs = inputsOf({ run, ...op }).map(({ values, shape }) => parameter(values, { shape, dtype: "f64" }));
    const [plain, graphed] = [false, true].map((createGraph) =>
      grad(weighted(run(...inputs)), inputs, { createGraph }),
    ) as [Tensor[], Tensor[]];
    plain.forEach((g, i) => {
      expect(graphed[i]!.dataSync()).toAgreeWith(g.dataSync(), { absolute: 1e-14, relative: 1e-12 });
      expect([g.requiresGrad, g.shape]).toEqual([false, inputs[i]!.shape]);
    });
  });
});

it("outlives the results that it goes through", () => {
  const x = parameter([0.5, -1], { dtype: "f64" });
  const y = x.exp();
  const total = y.sum();
  const [slope] = grad(total, [x], { createGraph: true }) as [Tensor];
  for (const gone of [y, total]) gone.dispose();
  expect(grad(slope.sum(), [x])[0]!.dataSync()).toAgreeWith([Math.exp(0.5), Math.exp(-1)], {
    absolute: 0,
    relative: 1e-14,
  });
});

it("is 0 for rows of cross-entropy that are ignored", () => {
  const x = parameter([1, 2, 3, 4, 5, 7], { shape: [2, 3], dtype: "f64" });
  const [slope] = grad(crossEntropyRows(x, tensor([2, -100], { dtype: "i32" })).sum(), [x], { createGraph: true });
  const curve = grad(slope!.mul(tensor([1, 2, 4])).sum(), [x])[0]!.dataSync();
  expect([...curve.slice(3)]).toEqual([0, 0, 0]);
  expect(curve[0]).not.toBe(0);
});

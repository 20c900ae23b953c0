// Gradients of gradients: every op against finite differences in float64, and against PyTorch where OPT_TORCH_PYTHON has it.
import { DIFFERENTIABLE_OPS, gradCheck, inputsOf } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { parameter, tensor } from "../create";
import { grad } from "../engine";
import { enableGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { concat } from "./index";

/** Every element squared, with weights of its own: the gradients of linear ops depend on their inputs, too. */
function weighted(output: Tensor): Tensor {
  const weights = Float64Array.from({ length: output.size }, (_, i) => Math.sin(i + 1));
  return output
    .mul(output)
    .mul(tensor(weights, { shape: output.shape }))
    .sum();
}

describe("the gradient of the gradient of", () => {
  it.each(DIFFERENTIABLE_OPS)("$name", async ({ run, ...op }) => {
    const inputs = inputsOf({ run, ...op }).map(({ values, shape }) => tensor(values, { shape }));
    const gradients = (...xs: Tensor[]) =>
      enableGrad(() => {
        const found = grad(weighted(run(...xs)), xs, { createGraph: true });
        return concat(found.map((g) => g.reshape([g.size])));
      });
    await gradCheck(gradients, inputs, { tolerance: { absolute: 1e-6, relative: 1e-5 } });
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

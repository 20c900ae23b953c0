/** A physics-informed network (Raissi et al. 2019) for Burgers' equation: u_t + u u_x = nu u_xx at 4,096 places, and u = -sin(pi x) at t = 0. */
import { concat, grad, sin, type Tensor, tensor } from "@opt/core";
import { Linear, Module, ModuleList } from "@opt/nn";
import { values } from "../nn/values";
import type { RealTask } from "./task";

const [PLACES, STARTS, WIDTH] = [4096, 256, 64];
const VISCOSITY = 0.01 / Math.PI;

class Solution extends Module {
  readonly layers = new ModuleList(
    [2, WIDTH, WIDTH, WIDTH, WIDTH].map((width, i) => new Linear(width, i === 4 ? 1 : WIDTH)),
  );

  forward(x: Tensor, t: Tensor): Tensor {
    let hidden = concat([x, t], 1);
    for (const [i, layer] of [...this.layers].entries())
      hidden = i < 4 ? layer.forward(hidden).tanh() : layer.forward(hidden);
    return hidden;
  }
}

/** The same numbers, which derivatives are taken by. */
function leaf(x: Tensor): Tensor {
  const result = x.detach();
  result.requiresGrad = true;
  return result;
}

export function pinn(): RealTask {
  const model = new Solution();
  const places = (count: number, factor: number) => tensor(values(count, factor), { shape: [count, 1] });
  return {
    model,
    batch: (index) => [
      places(PLACES, 104_729 + 2 * index),
      places(PLACES, 1299 + 2 * index),
      places(STARTS, 31 + 2 * index),
    ],
    loss(xs, ts, starts) {
      const [x, t] = [leaf(xs!), leaf(ts!)];
      const u = model.forward(x, t);
      const [ux, ut] = grad(u.sum(), [x, t], { createGraph: true });
      const [uxx] = grad(ux.sum(), [x], { createGraph: true });
      const residual = ut.add(u.mul(ux)).sub(uxx.mul(VISCOSITY));
      const start = model.forward(starts!, starts!.mul(0)).add(sin(starts!.mul(Math.PI)));
      return residual.square().mean().add(start.square().mean());
    },
    optimizer: "AdamW",
    lr: 1e-3,
  };
}

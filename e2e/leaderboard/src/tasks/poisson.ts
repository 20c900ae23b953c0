/** A physics-informed network: a network learns a function from its differential equation. */
import { grad, linspace, sin, type Tensor, tidy } from "@opt/core";
import { Linear, Sequential, Tanh } from "@opt/nn";
import type { Task } from "./task";

const POINTS = 64;
const WIDTH = 32;
/** The solution is sin(pi x) + sin(WAVES pi x) / 2. */
const WAVES = 2;

const wave = (x: Tensor, waves: number) => sin(x.mul(waves * Math.PI));
const solution = (x: Tensor) => wave(x, 1).add(wave(x, WAVES).div(2));
const curvature = (x: Tensor) =>
  wave(x, 1)
    .add(wave(x, WAVES).mul(WAVES ** 2 / 2))
    .mul(-(Math.PI ** 2));

export const task: Task = {
  title: "PINN of Poisson's equation",
  about: `A network of two hidden layers of ${WIDTH} learns u from u'' = f on [0, 1], where u is 0 at both ends, from ${POINTS} points. Its gradients are third derivatives. The loss is the mean square error of u, divided by that of 0.`,
  budget: 200,
  restLr: 0.01,
  files: [],
  async prepared() {
    return ({ generator }) => {
      const model = new Sequential(
        new Linear(1, WIDTH, { generator }),
        new Tanh(),
        new Linear(WIDTH, WIDTH, { generator }),
        new Tanh(),
        new Linear(WIDTH, 1, { generator }),
      );
      /** Zero at both ends by its form. */
      const u = (x: Tensor) => model.forward(x).mul(x).mul(x.neg().add(1));
      const points = () => tidy(() => linspace(0, 1, POINTS).reshape([POINTS, 1]));
      function* batches(): Generator<Tensor[]> {
        for (;;) yield [points()];
      }
      return {
        model,
        batches: batches(),
        loss(given: Tensor) {
          const x = given.clone();
          x.requiresGrad = true;
          const [slope] = grad(u(x).sum(), [x], { createGraph: true });
          const [bend] = grad(slope!.sum(), [x], { createGraph: true });
          return bend!
            .sub(curvature(given))
            .div(Math.PI ** 2)
            .square()
            .mean();
        },
        unseen: [points()],
        evaluation: (x) => u(x).sub(solution(x)).square().mean().div(solution(x).square().mean()),
      };
    };
  },
};

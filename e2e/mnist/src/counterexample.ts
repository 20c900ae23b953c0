/** The sequence on which Adam fails (Reddi, Kale & Kumar, "On the Convergence of Adam and Beyond", 2018, section 5). */
import { Adam } from "@opt/adam-amsgrad";
import { parameter, tensor } from "@opt/core";

export interface Descent {
  readonly amsgrad: boolean;
  /** x after step t, and the average regret so far: (1 / t) sum of f_t(x_t) - f_t(-1). */
  readonly trace: readonly { readonly t: number; readonly x: number; readonly regret: number }[];
}

/** Steps after which the sequence repeats itself. */
export const CYCLE = 101;

/** d f_t / dx: f_t(x) = 1010 x if t mod 101 = 1, else -10 x, on [-1, 1]. Over a cycle they add up to 10 x: best is x = -1. */
const slopeAt = (t: number): number => (t % CYCLE === 1 ? 1010 : -10);

/** Projected descent with the betas of the paper and the step size 0.5 / sqrt(t) of online learning. */
export function descend(amsgrad: boolean, steps: number): Descent {
  const x = parameter([0], { device: "js" });
  const slope = tensor([0], { device: "js" });
  const optimizer = new Adam([["x", x]], { betas: [0.9, 0.99], amsgrad });
  x.grad = slope;
  const trace: { t: number; x: number; regret: number }[] = [];
  let position = 0;
  let regret = 0;
  for (let t = 1; t <= steps; t++) {
    regret += slopeAt(t) * (position + 1);
    slope.set([slopeAt(t)]);
    optimizer.groups[0]!.lr = 0.5 / Math.sqrt(t);
    optimizer.step();
    position = Math.min(Math.max(x.dataSync()[0]!, -1), 1);
    x.set([position]);
    trace.push({ t, x: position, regret: regret / t });
  }
  for (const made of [x, slope]) made.dispose();
  return { amsgrad, trace };
}

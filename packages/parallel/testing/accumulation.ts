/** How gradients accumulate in a model of ranks: backward and sync again, and an async `noSync`. */
import { expect } from "vitest";

/**
 * The body of a job of two ranks; `make` is what makes the averaged model of `net`. The input is 1 on rank 0 and 2 on rank 1, all weights
 * are 1, so that gradients are small integers and a half. Each entry is the gradients of one way.
 */
export const accumulation = (make: string) => `
  const x = core.full([1, 2], communicator.rank + 1);
  const run = async (steps) => {
    const net = new Sequential(new Linear(2, 4), new Linear(4, 1));
    core.noGrad(() => { for (const p of net.parameters()) p.set(core.ones(p.shape)); });
    const parallel = ${make};
    const backward = () => parallel.forward(x).sum().backward();
    await steps(parallel, backward);
    const averaged = parallel.parameters?.() ?? net.parameters();
    const gradients = averaged.flatMap((p) => p.grad.reshape([-1]).tolist());
    parallel.dispose();
    return gradients;
  };
  tell([
    await run(async (parallel, backward) => { backward(); await parallel.sync(); }),
    await run(async (parallel, backward) => { for (let i = 0; i < 3; i++) { backward(); await parallel.sync(); } }),
    await run(async (parallel, backward) => {
      await parallel.noSync(async () => { backward(); await sleep(1); backward(); await sleep(1); });
      backward();
      await parallel.sync();
    }),
    await run(async (parallel, backward) => {
      await parallel.noSync(async () => { backward(); await sleep(1); throw new Error("stopped"); }).catch(() => {});
      try { parallel.noSync(() => { backward(); throw new Error("stopped"); }); } catch {}
      backward();
      await parallel.sync();
    }),
  ]);`;

/** @param told by a job of `accumulation`, by rank */
export function checkAccumulation(told: unknown[]): void {
  for (const [once, ...ways] of told as [number[], ...number[][]][]) {
    expect(once.length).toBeGreaterThan(0);
    expect(once.every((value) => value !== 0)).toBe(true);
    for (const gradients of ways) expect(gradients).toEqual(once.map((value) => 3 * value));
  }
}

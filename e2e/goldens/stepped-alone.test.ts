/** "The others are left alone and do not count the step": each parameter is stepped as if it were the only one, in any order, group and company. */
import { init, parameter, tensor } from "@opt/core";
import { seededArray, triesAll } from "@opt/testkit";
import { optimizerRuns } from "@opt/testkit/optimizers";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

await init("js");

const STEPS = 4;
/** Of each parameter its extents and, for each step, whether it has a gradient. */
const parameters = fc.array(
  fc.record({
    shape: fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 4 })),
    given: fc.array(fc.boolean(), { minLength: STEPS, maxLength: STEPS }),
    dtype: fc.constantFrom("f32", "f64", "bf16"),
  }),
  { minLength: 2, maxLength: 4 },
);
const runs = await optimizerRuns({ lr: 0.1 });
/** Whose distance is one number for all parameters with gradients: only one of them gets any here. */
const SHARE_A_DISTANCE = ["DAdaptAdamW", "Prodigy"];

describe.each(runs)("$title", ({ name, Optimizer, options }) => {
  it("steps each parameter as alone", () => {
    fc.assert(
      fc.property(parameters, fc.boolean(), fc.boolean(), (list, isReversed, isGrouped) => {
        const numbers = (i: number, seed: number) => {
          const [rows, columns] = list[i]!.shape;
          return seededArray("f32", rows * columns, { seed: 10 * i + seed });
        };
        const make = (i: number) => {
          const { shape, dtype } = list[i]!;
          return parameter(numbers(i, 0), { shape, dtype, name: `p${i}` });
        };
        const give = (p: ReturnType<typeof make>, i: number, step: number) => {
          const { shape, given, dtype } = list[i]!;
          const isGiven = given[step] && (i === 0 || !SHARE_A_DISTANCE.includes(name));
          p.grad = isGiven ? tensor(numbers(i, 1 + step), { shape, dtype }) : null;
        };
        const order = isReversed ? list.map((_, i) => i).reverse() : list.map((_, i) => i);
        const together = list.map((_, i) => make(i));
        const groups = order.map((i) => ({ params: [together[i]!] }));
        const joint = new Optimizer(isGrouped ? groups : order.map((i) => together[i]!), options);
        const alone = list.map((_, i) => {
          const p = make(i);
          return { p, optimizer: new Optimizer([p], options) };
        });
        for (let step = 0; step < STEPS; step++) {
          for (const [i, p] of together.entries()) give(p, i, step);
          for (const [i, { p }] of alone.entries()) give(p, i, step);
          joint.step();
          for (const { optimizer } of alone) optimizer.step();
        }
        const words = (p: ReturnType<typeof make>) => [...p.dataSync()];
        expect(together.map(words)).toEqual(alone.map(({ p }) => words(p)));
        const { state } = joint.stateDict();
        for (const [i, { optimizer }] of alone.entries()) {
          const [mine, own] = [state[`p${i}`], optimizer.stateDict().state[`p${i}`]];
          expect(mine === undefined).toBe(own === undefined);
          expect(mine?.step).toEqual(own?.step);
        }
      }),
      { numRuns: triesAll ? 30 : 5 },
    );
  });
});

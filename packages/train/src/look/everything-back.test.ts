// "Puts weights, optimizer, rates and modes back": whatever the state was before, and wherever the run ends or fails.
import { init, manualSeed, randn, type Tensor } from "@opt/core";
import { BatchNorm1d, Linear, mseLoss, Sequential } from "@opt/nn";
import { SGD } from "@opt/sgd";
import fc from "fast-check";
import { expect, it } from "vitest";
import { findLearningRate } from "./find-learning-rate";

await init("js");

const begun = fc.record({
  steps: fc.nat(2),
  lrs: fc.tuple(fc.constantFrom(0.1, 0.3), fc.constantFrom(0.01, 2)),
  momentum: fc.constantFrom(0, 0.9),
  modes: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
  /** The call of the loss that throws. */
  fails: fc.option(fc.integer({ min: 1, max: 4 })),
});

it("findLearningRate leaves everything as it was", async () => {
  await fc.assert(
    fc.asyncProperty(begun, fc.nat(99), async ({ steps, lrs, momentum, modes, fails }, seed) => {
      manualSeed(seed);
      const model = new Sequential(new Linear(2, 3), new BatchNorm1d(3), new Linear(3, 1));
      const [first, ...others] = model.namedParameters();
      const optimizer = new SGD(
        [
          { params: [first!], lr: lrs[0] },
          { params: others, lr: lrs[1] },
        ],
        { momentum },
      );
      const batch: [Tensor, Tensor] = [randn([4, 2]), randn([4, 1])];
      for (let i = 0; i < steps; i++) {
        mseLoss(model.forward(batch[0]), batch[1]).backward();
        optimizer.step();
        optimizer.zeroGrad();
      }
      for (const [i, layer] of model.modules().entries()) layer.training = modes[i]!;
      const numbers = (x: Tensor | number) => (typeof x === "number" ? x : [...x.dataSync()]);
      const seen = () => ({
        weights: Object.entries(model.stateDict()).map(([name, x]) => [name, numbers(x)]),
        groups: optimizer.groups.map(({ lr }) => lr),
        state: Object.entries(optimizer.stateDict().state).map(([name, entry]) => [
          name,
          Object.entries(entry).map(([key, part]) => [key, numbers(part)]),
        ]),
        modes: model.modules().map(({ training }) => training),
      });
      const before = seen();
      let calls = 0;
      const loss = (output: Tensor, target: Tensor) => {
        if (++calls === fails) throw new Error("broken");
        return mseLoss(output, target);
      };
      const running = findLearningRate(model, { data: [batch], loss, optimizer, steps: 5 });
      await running.catch((error: Error) => expect(error.message).toBe("broken"));
      expect(seen()).toEqual(before);
    }),
    { numRuns: 10 },
  );
});

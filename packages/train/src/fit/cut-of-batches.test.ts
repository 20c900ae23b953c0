// What is measured is the same however samples are cut into batches, and measuring changes nothing of a model.
import { Generator, init, manualSeed, randint, randn, type Tensor } from "@opt/core";
import { BatchNorm1d, crossEntropy, Dropout, Linear, Sequential } from "@opt/nn";
import fc from "fast-check";
import { expect, it } from "vitest";
import { accuracy, f1, meanAbsoluteError, perplexity } from "../metrics/metrics";
import { evaluate, predict } from "./evaluate";

await init("js");
manualSeed(11);

const SAMPLES = 12;
const [x, y] = [randn([SAMPLES, 4]), randint(3, [SAMPLES])];
const generator = new Generator(2);
const model = new Sequential(new Linear(4, 5), new BatchNorm1d(5), new Dropout(0.5, { generator }), new Linear(5, 3));
model.forward(x).sum().backward();

/** Lengths of batches that have all samples. */
const cuts = fc
  .array(fc.integer({ min: 1, max: SAMPLES - 1 }), { maxLength: 4 })
  .map((places) => [...new Set([0, ...places, SAMPLES])].sort((a, b) => a - b))
  .map((places) => places.slice(1).map((end, i): [number, number] => [places[i]!, end]));

const batches = (cut: readonly [number, number][]): [Tensor, Tensor][] =>
  cut.map(([from, to]) => [x.slice(from, to), y.slice(from, to)]);

const seen = () => ({
  state: Object.entries(model.stateDict()).map(([name, value]) => [name, [...value.dataSync()]]),
  gradients: model.parameters().map(({ grad }) => grad && [...grad.dataSync()]),
  modes: model.modules().map(({ training }) => training),
  draws: generator.stateDict(),
});

it("evaluates and predicts the same, and changes nothing", async () => {
  const metrics = () => [accuracy(), accuracy({ topK: 2 }), f1({ classes: 3 }), perplexity()];
  const measure = (cut: readonly [number, number][], compile: boolean) =>
    evaluate(model, { data: batches(cut), loss: crossEntropy, metrics: metrics(), compile });
  const [before, whole] = [seen(), await measure([[0, SAMPLES]], false)];
  const outputs = (await predict(model, batches([[0, SAMPLES]]))).tolist() as number[][];
  await fc.assert(
    fc.asyncProperty(cuts, fc.boolean(), async (cut, compile) => {
      const found = await measure(cut, compile);
      for (const [name, value] of Object.entries(whole)) expect(found[name]).toBeCloseTo(value, 5);
      const predicted = (await predict(model, batches(cut))).tolist() as number[][];
      expect(predicted).toHaveLength(outputs.length);
      for (const [i, value] of predicted.flat().entries()) expect(value).toBeCloseTo(outputs.flat()[i]!, 5);
    }),
    { numRuns: 12 },
  );
  expect(seen()).toEqual(before);
});

it("metrics add up over batches", () => {
  const error = meanAbsoluteError();
  const [output, target] = [randn([SAMPLES, 2]), randn([SAMPLES, 2])];
  const whole = output.sub(target).abs().mean().dataSync()[0]!;
  fc.assert(
    fc.property(cuts, (cut) => {
      error.reset();
      for (const [from, to] of cut) error.update(output.slice(from, to), target.slice(from, to));
      expect(error.value()).toBeCloseTo(whole, 5);
    }),
    { numRuns: 12 },
  );
});

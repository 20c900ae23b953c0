/** `tools/bench/fit.ts [device] [rounds]`: what `fit` costs over the loop written by hand, at 64 images a step; results are compared first. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { compile, Generator, init, type Tensor } from "@opt/core";
import { DataLoader } from "@opt/data";
import { crossEntropy } from "@opt/nn";
import { fit as train } from "@opt/train";
import { digitNetwork, loadMnist, PIXELS } from "@opt-e2e/mnist";

type Batch = [Tensor, Tensor];

const [device = "cpu", rounds = "15"] = process.argv.slice(2);
const HIDDEN = 128;
const BATCH = 64;
const EPOCHS = 2;
const STEPS = 937; // of MNIST's 60,000 images

await init(device);
const { training } = loadMnist();
const samples = {
  length: STEPS * BATCH,
  get: (i: number) => training.get(i),
  batch: (indices: Int32Array) => training.batch(indices),
};

function begin() {
  const model = digitNetwork(HIDDEN);
  const weights = new Generator(1);
  for (const parameter of model.parameters())
    parameter.set(Float32Array.from({ length: parameter.size }, () => (weights.nextFloat() - 0.5) / 10) as never);
  const optimizer = new AdamW(model.namedParameters(), { lr: 1e-3 });
  const data = new DataLoader(samples as never, { batchSize: BATCH, shuffle: true, generator: new Generator(2) });
  const loss = ([images, labels]: Batch) => crossEntropy(model.forward(images.reshape([-1, PIXELS]).div(255)), labels);
  return { model, optimizer, data: data as unknown as Iterable<Batch>, loss };
}

/** @param every milliseconds after which other work of the program has its turn, as `fit` gives it one */
async function loop(every: number): Promise<number[]> {
  const { optimizer, data, loss: lossOf } = begin();
  const losses: number[] = [];
  const step = compile((batch: Batch) => {
    const loss = lossOf(batch);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  });
  let last = performance.now();
  for (let epoch = 0; epoch < EPOCHS; epoch++)
    for await (const batch of data) {
      const loss = step(batch);
      losses.push(loss.dataSync()[0]!);
      loss.dispose();
      if (performance.now() - last < every) continue;
      await new Promise((resolve) => setImmediate(resolve));
      last = performance.now();
    }
  step.dispose();
  return losses;
}

async function byFit(): Promise<number[]> {
  const { model, optimizer, data, loss } = begin();
  const { losses } = await train(model, { data, forward: loss, optimizer, epochs: EPOCHS, callbacks: [] });
  return losses;
}

const ways = {
  "by hand": () => loop(100),
  "by hand, without turns of others": () => loop(Number.POSITIVE_INFINITY),
  fit: byFit,
};
const names = Object.keys(ways) as (keyof typeof ways)[];
const reference = await ways["by hand"]();
const fitted = await byFit();
if (reference.length !== EPOCHS * STEPS || reference.some((loss, i) => loss !== fitted[i]))
  throw new Error("other losses");

/** Milliseconds a step: of the clock, and of the process's processors, which others on the machine disturb less. */
const measured = names.map(() => ({ clock: [] as number[], processors: [] as number[] }));
for (let round = 0; round < Number(rounds); round++)
  for (let turn = 0; turn < names.length; turn++) {
    const way = (round + turn) % names.length;
    const [begun, before] = [performance.now(), process.cpuUsage()];
    await ways[names[way]!]();
    const { user, system } = process.cpuUsage(before);
    measured[way]!.clock.push((performance.now() - begun) / reference.length);
    measured[way]!.processors.push((user + system) / 1000 / reference.length);
  }
const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
for (const kind of ["clock", "processors"] as const)
  for (const [way, name] of names.entries()) {
    const ratios = measured[2]![kind].map((time, i) => time / measured[way]![kind][i]!);
    const shown = `${median(measured[way]![kind]).toFixed(3)} ms a step; fit takes ${median(ratios).toFixed(4)} of it`;
    console.log(`${device}, ${kind}, ${name}: ${shown}`);
  }

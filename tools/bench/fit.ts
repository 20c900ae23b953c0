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

async function byHand(): Promise<number[]> {
  const { optimizer, data, loss: lossOf } = begin();
  const losses: number[] = [];
  const step = compile((batch: Batch) => {
    const loss = lossOf(batch);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss;
  });
  for (let epoch = 0; epoch < EPOCHS; epoch++)
    for (const batch of data) {
      const loss = step(batch);
      losses.push(await loss.item());
      loss.dispose();
    }
  step.dispose();
  return losses;
}

async function byFit(): Promise<number[]> {
  const { model, optimizer, data, loss } = begin();
  const { losses } = await train(model, { data, forward: loss, optimizer, epochs: EPOCHS, callbacks: [] });
  return losses;
}

const ways = { byHand, byFit };
const [hand, fitted] = [await byHand(), await byFit()];
if (hand.length !== EPOCHS * STEPS || hand.some((loss, i) => loss !== fitted[i])) throw new Error("other losses");

/** Milliseconds a step: of the clock, and of the process's processors, which others on the machine disturb less. */
const measured = {
  byHand: { clock: [] as number[], cpu: [] as number[] },
  byFit: { clock: [] as number[], cpu: [] as number[] },
};
for (let round = 0; round < Number(rounds); round++)
  for (const name of round % 2 === 0 ? (["byHand", "byFit"] as const) : (["byFit", "byHand"] as const)) {
    const [begun, before] = [performance.now(), process.cpuUsage()];
    await ways[name]();
    const { user, system } = process.cpuUsage(before);
    measured[name].clock.push((performance.now() - begun) / hand.length);
    measured[name].cpu.push((user + system) / 1000 / hand.length);
  }
const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
for (const kind of ["clock", "cpu"] as const) {
  const [one, other] = [measured.byHand[kind], measured.byFit[kind]];
  const ratio = median(other.map((time, i) => time / one[i]!));
  console.log(
    `${device}, ${kind}: by hand ${median(one).toFixed(3)} ms a step, fit ${median(other).toFixed(3)} ms, ratio of a round ${ratio.toFixed(4)}`,
  );
}

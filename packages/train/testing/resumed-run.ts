/** A run of `fit` on ranks that stops after a step, or goes on from there. Prints, per rank, the samples of each step and the weights. */
import { AdamW } from "@opt/adam-amsgrad";
import { Generator, init, type Tensor, tensor } from "@opt/core";
import { DataLoader } from "@opt/data";
import { crossEntropy, Linear } from "@opt/nn";
import { connect, DistributedSampler } from "@opt/parallel";
import { checkpoints } from "../src/callbacks/checkpoints";
import { fit } from "../src/fit";

const [folder = "", batchSize, last, kind] = process.argv.slice(2);
await init("js");
const communicator = await connect();
const SAMPLES = 60;
const features = Array.from({ length: SAMPLES }, (_, i) =>
  Array.from({ length: 4 }, (_, k) => Math.sin(7 * i + 3 * k)),
);
const samples = features.map((x, i) => [tensor(x), tensor(i, { dtype: "i32" })] as [Tensor, Tensor]);
const model = new Linear(4, 3, { generator: new Generator(3) });
const { rank, size } = communicator;
const order =
  kind === "sampler"
    ? { sampler: new DistributedSampler(SAMPLES, { rank, size, seed: 5 }) }
    : { shuffle: true, generator: new Generator(5) };
const steps: number[][] = [];
const classes = Int32Array.from({ length: SAMPLES }, (_, i) => i % 3);
const at = (numbers: Tensor) =>
  tensor(
    Int32Array.from(numbers.dataSync(), (i) => classes[i]!),
    { dtype: "i32" },
  );
const interruption = new AbortController();
const history = await fit(model, {
  data: new DataLoader(samples, { batchSize: Number(batchSize), ...order }),
  communicator,
  epochs: 2,
  optimizer: new AdamW(model.namedParameters(), { lr: 0.05 }),
  forward: ([x, number]: [Tensor, Tensor]) => {
    steps.push([...number.dataSync()]);
    return crossEntropy(model.forward(x), at(number));
  },
  compile: false,
  resume: true,
  signal: interruption.signal,
  callbacks: [
    checkpoints(folder, { every: 1 }),
    {
      onStepEnd({ step }) {
        if (step === Number(last)) interruption.abort();
      },
    },
  ],
});
const all = await communicator.gather({ steps, weights: [...model.weight.dataSync()], epochs: history.epochs });
if (all) process.stdout.write(JSON.stringify(all));
await communicator.close();

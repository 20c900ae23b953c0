/**
 * Runs of `fit` over batches of three ranks: on these ranks with a whole model ("data") or one in parts ("fully"), and on one process that
 * accumulates ("alone"). `accumulated-run.ts <device>`
 */
import { named } from "../../parallel/testing/told";
import "@opt/kernels-cpu";
import { AdamW } from "@opt/adam-amsgrad";
import { Generator, init, noGrad, randn, type Tensor, tensor } from "@opt/core";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";
import { connect, FullyShardedDataParallel } from "@opt/parallel";
import { fit } from "../src/fit";

const RANKS = 3;
const STEPS = 4;
const [device = "js"] = process.argv.slice(2);
await init(device);
const communicator = await connect();

/** The batch of a rank in a step: each has other sizes. */
const batchOf = (step: number, rank: number): [Tensor, Tensor] => {
  const size = 2 + ((step + 2 * rank) % 4);
  const labels = Int32Array.from({ length: size }, (_, i) => (step + rank + i) % 3);
  return [randn([size, 6], { generator: new Generator(10 * step + rank) }), tensor(labels, { dtype: "i32" })];
};
const steps = Array.from({ length: STEPS }, (_, step) => step);
const ranks = Array.from({ length: RANKS }, (_, rank) => rank);

async function train(kind: "alone" | "data" | "fully") {
  const net = new Sequential(
    new Linear(6, 13, { generator: new Generator(1) }),
    new ReLU(),
    new Linear(13, 3, { generator: new Generator(2) }),
  );
  const model = kind === "fully" ? new FullyShardedDataParallel(net, communicator) : net;
  const isAlone = kind === "alone";
  const { losses } = await fit(model, {
    data: isAlone
      ? steps.flatMap((step) => ranks.map((rank) => batchOf(step, rank)))
      : steps.map((step) => batchOf(step, communicator.rank)),
    loss: crossEntropy,
    optimizer: new AdamW(model.namedParameters(), { lr: 0.05 }),
    ...(isAlone ? { accumulate: RANKS } : { communicator }),
    epochs: 2,
    callbacks: [],
  });
  const output = noGrad(() => model.forward(randn([5, 6], { generator: new Generator(99) })));
  return { steps: losses.length, output: [...output.dataSync()] };
}

const told = { alone: await train("alone"), data: await train("data"), fully: await train("fully") };
const all = await communicator.gather(told);
if (all) process.stdout.write(JSON.stringify(all, named));
await communicator.close();

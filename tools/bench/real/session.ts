/**
 * The program of real.ts: trains one model on one device, which is all that there is in the process. Speaks as process-session.ts expects.
 *
 *     session.ts <device> eager|compiled
 */
import { createInterface } from "node:readline";
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { AdamW } from "@opt/adam-amsgrad";
import { compile, init, type Tensor, tidy } from "@opt/core";
import { SGD } from "@opt/sgd";
import { timed } from "../contender";
import { setFirstWeights } from "../nn/first-weights";
import { forgetPeak, peakBytes, residentBytes } from "./memory";
import type { RealModel } from "./task";
import { realTasks } from "./tasks";

const BATCHES = 4;
const [deviceName, way] = process.argv.slice(2) as [string, string];
const losses: number[] = [];
let step: () => Promise<void>;
let before = 0;

async function open(name: RealModel): Promise<object> {
  await init(deviceName);
  before = residentBytes();
  const { model, batch, loss: lossOf, optimizer: kind, lr } = realTasks[name]();
  setFirstWeights(model);
  const Optimizer = kind === "SGD" ? SGD : AdamW;
  const optimizer = new Optimizer(model.namedParameters(), { lr });
  const batches = Array.from({ length: BATCHES }, (_, index) => batch(index));
  const train = (...inputs: Tensor[]) => {
    const loss = lossOf(...inputs);
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  };
  const next = way === "compiled" ? compile(train) : (...inputs: Tensor[]) => tidy(() => train(...inputs));
  step = async () => {
    const loss = next(...batches[losses.length % BATCHES]!);
    losses.push(await loss.item());
    loss.dispose();
  };
  forgetPeak();
  return {};
}

async function answerTo({ command, model, steps, count }: { [name: string]: unknown }): Promise<object> {
  if (command === "open") return open(model as RealModel);
  if (command === "run") return { milliseconds: await timed(steps as number, step), peakBytes: peakBytes() - before };
  return { values: losses.slice(0, count as number) };
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await answerTo(JSON.parse(line)).catch((error: Error) => ({ error: error.message }));
  console.log(JSON.stringify(answer));
}
process.exit(0); // a pool's threads would keep the process alive

/** MNIST training in Opt, eager or compiled. The images are in memory as float32, as the peers have them. */
import { compile, gather, init, type Tensor, tensor, tidy } from "@opt/core";
import { crossEntropy } from "@opt/nn";
import { digitNetwork, loadMnist, optimizers, PIXELS, readAll } from "@opt-e2e/mnist";
import { type Contender, timed } from "./contender";

export interface MnistWork {
  readonly optimizer: "AdamW" | "NAdam";
  readonly hidden: number;
  readonly batch: number;
  readonly lr: number;
}

/** Deterministic, in ±1 / sqrt(inputs), as a layer of so many inputs begins. */
function firstWeights(shape: readonly number[], inputs: number): Tensor {
  const length = shape.reduce((product, extent) => product * extent, 1);
  const data = Float32Array.from({ length }, (_, i) => ((2 * ((i * 7919) % 10_007)) / 10_007 - 1) / Math.sqrt(inputs));
  return tensor(data, { shape });
}

/** The order of the images in an epoch: 7919 has no divisor in common with 60,000. */
function orderOf(epoch: number, count: number): Int32Array {
  return Int32Array.from({ length: count }, (_, i) => (i * 7919 + epoch) % count);
}

/** All images, a row each, on the default device; and their labels. */
function inMemory(digits: ReturnType<typeof loadMnist>["training"]): { images: Tensor; labels: ArrayLike<number> } {
  return tidy(() => {
    const [images, labels] = digits.batch(Int32Array.from({ length: digits.length }, (_, i) => i));
    return { images: images.reshape([-1, PIXELS]).div(255), labels: labels.dataSync() };
  });
}

export function optMnist(deviceName: string, isCompiled: boolean): Contender<MnistWork> {
  return {
    name: `opt ${deviceName}${isCompiled ? " compiled" : ""}`,
    tolerance: 1e-4,
    async open({ optimizer: name, hidden, batch, lr }) {
      if (deviceName === "js") return "too slow to be of interest";
      const device = await init(deviceName).catch((error: Error) => error.message);
      if (typeof device === "string") return device;
      const { training } = loadMnist();
      const model = digitNetwork(hidden);
      const first = {
        "0.weight": firstWeights([hidden, PIXELS], PIXELS),
        "0.bias": firstWeights([hidden], PIXELS),
        "2.weight": firstWeights([10, hidden], hidden),
        "2.bias": firstWeights([10], hidden),
      };
      model.loadStateDict(first);
      for (const made of Object.values(first)) made.dispose();
      const optimizer = optimizers[name](model.namedParameters(), lr);
      const perEpoch = Math.floor(training.length / batch);
      const losses: number[] = [];
      let unread: Tensor[] = [];
      let order: Int32Array = new Int32Array();
      let done = 0;
      const { images, labels } = inMemory(training);
      const trainOn = (rows: Tensor, digits: Tensor) => {
        const loss = crossEntropy(model.forward(gather(images, rows)), digits);
        loss.backward();
        optimizer.step();
        optimizer.zeroGrad();
        return loss.detach();
      };
      const compiled = compile(trainOn);
      const train = isCompiled ? compiled : trainOn;
      const step = () => {
        const i = done % perEpoch;
        if (i === 0) order = orderOf(done / perEpoch, training.length);
        const rows = order.subarray(i * batch, (i + 1) * batch);
        unread.push(tidy(() => train(tensor(rows), tensor(rows.map((row) => labels[row]!)))));
        done++;
      };
      const readLosses = async () => {
        losses.push(...(await readAll(unread)));
        unread = [];
      };
      return {
        async run(steps) {
          await init(deviceName); // batches are made on the default device
          return timed(steps, step, readLosses);
        },
        result: async (count) => losses.slice(0, count),
        async close() {
          compiled.dispose();
          images.dispose();
          optimizer.dispose();
          for (const parameter of model.parameters()) parameter.dispose();
        },
      };
    },
  };
}

/** The worker: trains on MNIST, and keeps checkpoints in the browser's own files where it is given a folder. */
import "@opt/kernels-wasm";
import { Generator, init, type Tensor } from "@opt/core";
import { DataLoader, TensorDataset } from "@opt/data";
import { NAdam } from "@opt/nadam";
import { crossEntropy, Linear, ReLU, Sequential } from "@opt/nn";
import { accuracy, checkpoints, fit } from "@opt/train";
import { expose } from "@opt/train/worker";
import { digitsOf, fetchDigits, PIXELS, SIDE } from "./src/digits";

export interface Settings {
  readonly images: number;
  readonly epochs: number;
  readonly folder?: string;
}

expose(async (run, { images, epochs, folder }: Settings) => {
  await init("wasm");
  const { pixels, labels } = await digitsOf(await fetchDigits("train", () => {}));
  const generator = new Generator(1);
  const digits = new TensorDataset(
    { data: pixels.subarray(0, images * PIXELS), shape: [images, SIDE, SIDE] },
    { data: labels.subarray(0, images), shape: [images] },
  );
  const data = new DataLoader(digits, { batchSize: 64, shuffle: true, generator });
  const model = new Sequential(new Linear(PIXELS, 128, { generator }), new ReLU(), new Linear(128, 10, { generator }));
  const forward = ([x, target]: [Tensor, Tensor]) => {
    const output = model.forward(x.reshape([-1, PIXELS]).div(255));
    return { loss: crossEntropy(output, target), output, target };
  };
  const history = await fit(model, {
    data: data as Iterable<[Tensor, Tensor]>,
    forward,
    optimizer: new NAdam(model.namedParameters()),
    epochs,
    metrics: [accuracy()],
    callbacks: [run.report(), ...(folder === undefined ? [] : [checkpoints(folder, { every: 10 })])],
    resume: folder !== undefined,
    signal: run.signal,
  });
  return { weights: model.stateDict(), losses: history.losses, accuracy: history.epochs.at(-1)!.accuracy };
});

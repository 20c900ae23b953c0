// Attention, recurrence, normalisation and pooling, trained on every device: what js computes; compiled steps have the bits of eager ones.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { compile, type Device, type DType, Generator, init, type Tensor, tensor, tidy } from "@opt/core";
import {
  AdaptiveAvgPool2d,
  AvgPool2d,
  BatchNorm2d,
  bceWithLogits,
  Conv1d,
  Conv2d,
  ConvTranspose2d,
  Flatten,
  GroupNorm,
  GRU,
  huberLoss,
  klDiv,
  LeakyReLU,
  Linear,
  LSTM,
  Module,
  MultiheadAttention,
  nllLoss,
  RMSNorm,
  Sequential,
  SiLU,
  Softplus,
} from "@opt/nn";
import { SGD } from "@opt/sgd";
import { eachDevice, triesAll, useSoftwareVulkan } from "@opt/testkit";
import { expect, it } from "vitest";

useSoftwareVulkan();

class Everything extends Module {
  readonly images: Sequential;
  readonly sequence: Conv1d;
  readonly attention: MultiheadAttention;
  readonly norm: RMSNorm;
  readonly lstm: LSTM;
  readonly gru: GRU;
  readonly head: Linear;

  constructor(device: Device, dtype: DType) {
    super();
    const place = { device, dtype };
    const options = { ...place, generator: new Generator(3) };
    this.images = new Sequential(
      new Conv2d(2, 4, 3, { groups: 2, padding: 1, ...options }),
      new BatchNorm2d(4, place),
      new LeakyReLU(),
      new AvgPool2d(2),
      new ConvTranspose2d(4, 2, 2, { stride: 2, ...options }),
      new GroupNorm(2, 2, place),
      new SiLU(),
      new AdaptiveAvgPool2d([2, 3]),
      new Flatten(),
      new Linear(12, 4, options),
    );
    this.sequence = new Conv1d(3, 4, 3, { padding: 1, ...options });
    this.attention = new MultiheadAttention(4, 2, { batchFirst: true, ...options });
    this.norm = new RMSNorm(4, place);
    this.lstm = new LSTM(4, 4, { batchFirst: true, bidirectional: true, ...options });
    this.gru = new GRU(8, 3, { batchFirst: true, ...options });
    this.head = new Linear(3, 4, options);
  }

  forward(images: Tensor, sequence: Tensor): Tensor {
    const x = this.norm.forward(this.sequence.forward(sequence).transpose(1, 2));
    const [seen] = this.attention.forward(x, x, x, { isCausal: true });
    const [, last] = this.gru.forward(this.lstm.forward(x.add(seen))[0]);
    return this.images.forward(images).add(this.head.forward(last.squeeze(0)));
  }
}

/** All losses, then the model's state, after five steps. */
async function trained(device: Device, dtype: DType, isCompiled: boolean): Promise<number[]> {
  const model = new Everything(device, dtype);
  // A bias before a normalisation has the gradient 0: of what rounding leaves of it, Adam would make whole steps.
  const optimizer = new SGD(model.namedParameters(), { lr: 0.05, momentum: 0.9 });
  const numbers = (count: number) => Float32Array.from({ length: count }, (_, i) => Math.sin(i * i + 1));
  const images = tensor(numbers(3 * 2 * 16), { shape: [3, 2, 4, 4], device, dtype });
  const sequence = tensor(numbers(3 * 3 * 5), { shape: [3, 3, 5], device, dtype });
  const target = tensor(numbers(12).map(Math.abs), { shape: [3, 4], device, dtype });
  const labels = tensor(Int32Array.of(2, 0, -100), { device });
  const softplus = new Softplus();
  const body = () => {
    const y = model.forward(images, sequence);
    const likely = y.logSoftmax();
    const losses = [bceWithLogits(y, target), huberLoss(softplus.forward(y), target, { delta: 0.5 }), klDiv(likely, target)];
    const loss = losses.reduce((a, b) => a.add(b)).add(nllLoss(likely, labels));
    loss.backward();
    optimizer.step();
    optimizer.zeroGrad();
    return loss.detach();
  };
  const step = isCompiled ? compile(body) : () => tidy(body);
  const losses = Array.from({ length: 5 }, () => step());
  const read = [...losses, ...Object.values(model.stateDict())].map((x) => x.data());
  const result = (await Promise.all(read)).flatMap((values) => [...values]);
  return result;
}

const js = await init("js");
const expected = { f32: trained(js, "f32", false), bf16: trained(js, "bf16", false) };

await eachDevice((device) => {
  // Nearly all of WebGPU's time goes into compiling shaders.
  it.each(device.portable || triesAll ? (["f32", "bf16"] as const) : (["f32"] as const))("%s", async (dtype) => {
    const called = await trained(device, dtype, false);
    const tolerance = dtype === "f32" ? { absolute: 2e-4, relative: 1e-3 } : { absolute: 0.06, relative: 0.06 };
    expect(called).toAgreeWith(await expected[dtype], tolerance);
    expect(await trained(device, dtype, true)).toAgreeWith(called);
  });
});

/** Ops, gradients, layers and optimizers on tensors: every device computes in f32 what js computes in f64. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { AdamW } from "@opt/adam-amsgrad";
import { type Device, type DType, fma, Generator, less, parameter, where, type Tensor, tensor, tidy, zeros } from "@opt/core";
import { NAdam } from "@opt/nadam";
import { Conv2d, crossEntropy, Dropout, Embedding, Flatten, GELU, LayerNorm, Linear, MaxPool2d, Module, Sequential } from "@opt/nn";
import { DIFFERENTIABLE_OPS, eachDevice, inputsOf, type OpCase, sample, useSoftwareVulkan } from "@opt/testkit";
import { describe, expect, it } from "vitest";

useSoftwareVulkan();
const close = { absolute: 1e-5, relative: 1e-4 };

/** The result and all gradients, one after the other. */
async function computed(op: OpCase, device: Device | string, dtype: DType): Promise<number[]> {
  const leaves = inputsOf(op).map(({ values, shape }) => parameter(Float32Array.from(values), { shape, device, dtype }));
  const output = op.run(...leaves);
  const weights = Float32Array.from({ length: output.size }, (_, i) => 1 + (i % 3) / 2);
  output.backward(tensor(weights, { shape: output.shape, device: output.device, dtype: output.dtype }));
  const read = [output, ...leaves.map(({ grad }) => grad).filter((grad) => grad !== null)].map((x) => x.data());
  return (await Promise.all(read)).flatMap((values) => [...values]);
}

class Model extends Module {
  readonly tokens: Embedding;
  readonly images: Sequential;
  readonly head: Sequential;
  constructor(device: Device | string, dtype: DType) {
    super();
    const options = { device, dtype, generator: new Generator(3) };
    this.tokens = new Embedding(5, 4, options);
    this.images = new Sequential(new Conv2d(1, 2, 2, options), new MaxPool2d(2), new Flatten(), new Linear(2, 4, options));
    const drop = new Dropout(0.5, { generator: new Generator(9) });
    this.head = new Sequential(new LayerNorm(4, { device, dtype }), new GELU(), drop, new Linear(4, 3, options));
  }
  forward(images: Tensor, tokens: Tensor): Tensor {
    return this.head.forward(this.images.forward(images).add(this.tokens.forward(tokens)));
  }
}

async function trained(device: Device | string, dtype: DType, make: typeof AdamW | typeof NAdam): Promise<number[]> {
  const model = new Model(device, dtype);
  const optimizer = new make(model.namedParameters(), { lr: 0.01 });
  const pixels = Float32Array.from({ length: 27 }, (_, i) => Math.sin(i));
  const images = tensor(pixels, { shape: [3, 1, 3, 3], device, dtype });
  const tokens = tensor(Int32Array.of(4, 0, 4), { device });
  for (let step = 0; step < 3; step++) {
    tidy(() => crossEntropy(model.forward(images, tokens), [2, 0, 1], { labelSmoothing: 0.1 }).backward());
    optimizer.step();
    optimizer.zeroGrad();
  }
  return (await Promise.all(model.parameters().map((x) => x.data()))).flatMap((values) => [...values]);
}

const i32 = (device: Device) => tensor(Int32Array.of(2147483647, -2147483648, 16777217), { device });
const u8 = (device: Device) => tensor(Uint8Array.of(200, 10), { device });

// The expected numbers are PyTorch's.
const INTEGERS: [string, (device: Device) => Tensor, number[]][] = [
  ["i32 + 1", (on) => i32(on).add(1), [-2147483648, -2147483647, 16777218]],
  ["i32 * 3", (on) => i32(on).mul(3), [2147483645, -2147483648, 50331651]],
  ["i32 * i32", (on) => i32(on).mul(i32(on)), [1, 0, 33554433]],
  ["fma of i32", (on) => fma<Tensor>(i32(on), 2, 5), [3, 5, 33554439]],
  ["i32 ** 2", (on) => tensor(Int32Array.of(-3, 46341), { device: on }).pow(2), [9, -2147479015]],
  ["i32 < 16777216.5", (on) => less<Tensor>(i32(on), 16777216.5), [0, 1, 0]],
  ["i32 < 16777217", (on) => less<Tensor>(i32(on).sub(1), 16777217), [0, 0, 1]],
  ["16777216 < i32", (on) => less<Tensor>(16777216, i32(on)), [1, 0, 1]],
  ["i32 < i32", (on) => less<Tensor>(i32(on).sub(1), i32(on)), [1, 0, 1]],
  ["i32 < 3e9", (on) => less<Tensor>(i32(on), 3e9), [1, 1, 1]],
  ["a sum", (on) => i32(on).sum(), [16777216]],
  ["the largest, and where", (on) => i32(on).slice(1).max(), [16777217]],
  ["argmax", (on) => i32(on).slice(1).argmax(), [1]],
  ["a sum of conditions", (on) => less<Tensor>(i32(on), 20_000_000).sum(), [2]],
  ["a choice", (on) => where<Tensor>(less<Tensor>(i32(on), 0), 16777219, i32(on)), [2147483647, 16777219, 16777217]],
  ["zeros", (on) => zeros([2], { dtype: "i32", device: on }), [0, 0]],
  ["u8 + u8", (on) => u8(on).add(u8(on)), [144, 20]],
  ["u8 - 201", (on) => u8(on).sub(201), [255, 65]],
  ["u8 ** 2", (on) => u8(on).pow(2), [64, 100]],
  ["i32 to u8", (on) => i32(on).to("u8"), [255, 0, 1]],
];

await eachDevice((device) => {
  describe("ops and their gradients", () => {
    it.each(sample(DIFFERENTIABLE_OPS, device.portable ? 2 : 4))("$name", async (op) => {
      if (op.isOfHost && device.backend.readSync === undefined)
        return expect(computed(op, device, "f32")).rejects.toMatchObject({ code: "UNSUPPORTED" });
      const expected = await computed(op, "js", "f64");
      expect(await computed(op, device, "f32")).toAgreeWith(expected, close);
    });
  });

  it.each(INTEGERS)("%s", async (_, run, expected) => expect([...(await run(device).data())]).toEqual(expected));

  it.each([
    ["AdamW", AdamW],
    ["NAdam", NAdam],
  ] as const)("a model with every layer under %s", async (_, optimizer) => {
    expect(await trained(device, "f32", optimizer)).toAgreeWith(await trained("js", "f64", optimizer), { absolute: 2e-4, relative: 1e-3 });
  });
});

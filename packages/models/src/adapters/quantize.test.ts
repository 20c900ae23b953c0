/** Weights in 8 and 4 bits: what is stored, gradients of adapters over them, and memory. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { type Device, Generator, init, type Tensor, tensor, tidy } from "@opt/core";
import { Linear, Sequential } from "@opt/nn";
import { EXACT_DEVICES, eachDevice, expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { batchesOf, SIZES, TinyTransformer } from "../../testing/tiny-transformer";
import { causalLoss } from "../data/causal-loss";
import { lora, merge } from "./lora";
import { type Quantization, quantize } from "./quantize";

const [{ input, labels }] = batchesOf(1, 4, 12, SIZES.tokens) as [ReturnType<typeof batchesOf>[0]];
const FORMATS: Quantization[] = ["q8", "nf4"];
const LINEAR = /_proj$/;

/** Gradients of the adapter by name. */
function gradients(model: TinyTransformer, device: Device): Map<string, number[]> {
  const trained = model.namedParameters({ trainable: true });
  for (const [name, matrix] of trained) if (name.endsWith("lora_B.weight")) matrix.set(matrix.add(0.05));
  tidy(() => {
    const ids = tensor(input, { dtype: "i32", device });
    const { sum, count } = causalLoss(model.forward(ids), tensor(labels, { dtype: "i32", device }));
    sum.div(count).backward();
  });
  return new Map(trained.map(([name, { grad }]) => [name, [...grad!.dataSync()]]));
}

const linearsOf = (model: TinyTransformer) =>
  model.modules().filter((each): each is Linear => each instanceof Linear && each !== model.head);
const options = () => ({ rank: 2, alpha: 4, targets: [LINEAR], generator: new Generator(5) });

await eachDevice((device) => {
  it.each(FORMATS)("an adapter over %s has the gradients of one over the unpacked base", async (format) => {
    const quantized = await quantize(new TinyTransformer(SIZES, device), format, { targets: [LINEAR] });
    const plain = new TinyTransformer(SIZES, device);
    const weights = linearsOf(quantized).map(({ weight }) => weight);
    for (const [i, layer] of linearsOf(plain).entries()) layer.weight.set(weights[i]!);
    const [own, expected] = [quantized, plain].map((model) => gradients(lora(model, options()), device));
    expect([...own!.keys()]).toEqual([...expected!.keys()]);
    for (const [name, values] of expected!) {
      expect(
        values.some((value) => Math.abs(value) > 1e-4),
        name,
      ).toBe(true);
      expect(own!.get(name), name).toAgreeWith(values, { absolute: 1e-5, relative: 1e-5 });
    }
    expect(quantized.parameters({ trainable: true }).length).toBe(own!.size);
  });

  it.each(FORMATS)("%s: the same words as js, and the bytes that it promises", async (format) => {
    const make = (on: Device) => new Linear(130, 65, { device: on, generator: new Generator(1), bias: false });
    const { bytes } = device.memory();
    const layer = await quantize(new Sequential(make(device)), format, { targets: ["0"] });
    const blocks = Math.ceil((130 * 65) / 64);
    const table = format === "nf4" ? 256 * 2 * 4 : 0;
    expect(device.memory().bytes - bytes).toBe(blocks * (format === "nf4" ? 32 + 4 : 64 + 4) + table);
    const js = await init("js");
    const expected = await quantize(new Sequential(make(js)), format, { targets: ["0"] });
    const [own, theirs] = [layer, expected].map((each) => (each.at(0) as Linear).weight.dataSync());
    expect([...own!]).toEqual([...theirs!]);
  });
}, EXACT_DEVICES);

/** The weight of a layer that was stored. */
async function stored(values: readonly number[], format: Quantization) {
  await init("js");
  const layer = new Linear(values.length, 1, { bias: false });
  layer.weight.set(tensor([[...values]]));
  await quantize(new Sequential(layer), format, { targets: ["0"] });
  const { weight_codes, weight_scales } = layer as Linear & Record<"weight_codes" | "weight_scales", Tensor>;
  return {
    codes: [...weight_codes.dataSync()],
    scales: [...weight_scales.dataSync()],
    values: [...layer.weight.dataSync()],
  };
}

describe("quantize", () => {
  const TABLE = [
    ...[-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334],
    ...[-0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224],
    ...[0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1],
  ];

  it("packs nf4 as bitsandbytes: its table, two in a byte, the first in the high bits", async () => {
    const { codes, scales, values } = await stored(TABLE, "nf4");
    expect(codes.slice(0, 8)).toEqual([0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]);
    expect(scales).toEqual([1]);
    expect(values).toEqual(TABLE);
    const doubled = await stored([-2, 0.2, 0.1, 2].map(Math.fround), "nf4"); // 0.1 and 0.05 of the largest
    expect(doubled.codes.slice(0, 2)).toEqual([0x08, 0x8f]);
  });

  it("packs q8 in 255 even steps, and zeros as zeros", async () => {
    const { codes, values } = await stored([-127, 127, 0.4, 0.6, -3], "q8");
    expect(codes.slice(0, 5)).toEqual([1, 255, 128, 129, 125]);
    expect(values).toEqual([-127, 127, 0, 1, -3]);
    expect((await stored([0, 0], "q8")).values).toEqual([0, 0]);
    expect((await stored([0, 0], "nf4")).values).toEqual([0, 0]);
  });

  it("by default takes all layers but a head and tied ones", async () => {
    const device = await init("js");
    const model = new TinyTransformer(SIZES, device);
    model.head.weight = model.embed.weight;
    await quantize(model, "q8");
    const names = Object.keys(model.stateDict()).filter((name) => name.endsWith("weight_codes"));
    expect([names.length, names.includes("head.weight_codes")]).toEqual([12, false]);
    const { tensors } = device.memory();
    await quantize(model, "q8"); // what is stored stays
    expect(device.memory().tensors).toBe(tensors);
    expect(String(model)).toContain("inFeatures=16, outFeatures=32, bias=false, q8");
  });

  it("rejects what it can't store", async () => {
    await init("js");
    const net = () => new Sequential(new Linear(2, 2));
    await expectCode("BAD_ARGUMENT", () => quantize(net(), "q4" as "q8"));
    await expectCode("BAD_ARGUMENT", () => quantize(net(), "q8", { targets: ["1"] }));
    await expectCode("BAD_DTYPE", () => quantize(net().to("bf16"), "q8"));
    await expectCode("BAD_STATE", () => quantize(lora(net(), { targets: ["0"] }), "q8"));
    const infinite = net();
    (infinite.at(0) as Linear).weight.set(
      tensor([
        [1, 2],
        [3, Number.POSITIVE_INFINITY],
      ]),
    );
    await expectCode("NOT_FINITE", () => quantize(infinite, "q8"));
    const quantized = await quantize(net(), "nf4");
    expectCode("BAD_SHAPE", () => quantized.forward(tensor([[1, 2, 3]])));
    expectCode("UNSUPPORTED", () => merge(lora(quantized, { targets: ["0"] })));
  });

  it("trains DoRA, and recomputed blocks have the same gradients", async () => {
    const device = await init("js");
    const run = async (isRecomputed: boolean) => {
      const model = await quantize(new TinyTransformer(SIZES, device, isRecomputed), "nf4", { targets: [LINEAR] });
      return gradients(lora(model, { ...options(), dora: true }), device);
    };
    expect(await run(true)).toEqual(await run(false));
  });
});

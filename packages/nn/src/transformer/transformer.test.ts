import { compile, concat, Generator, init, noGrad, rand, type Tensor, tensor, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import {
  LayerNorm,
  Transformer,
  TransformerDecoder,
  TransformerDecoderLayer,
  TransformerEncoder,
  TransformerEncoderLayer,
} from "../index";

const options = () => ({ dimFeedforward: 8, batchFirst: true, generator: new Generator(1) });
const x = () => rand([2, 3, 4], { generator: new Generator(2) });

describe("transformer layers", () => {
  it("have PyTorch's names", () => {
    const names = (model: { stateDict(): object }) => Object.keys(model.stateDict());
    const both = (name: string) => [`${name}.weight`, `${name}.bias`];
    const attention = (name: string) => [`${name}.in_proj_weight`, `${name}.in_proj_bias`, ...both(`${name}.out_proj`)];
    const encoder = [...attention("self_attn"), ...["linear1", "linear2", "norm1", "norm2"].flatMap(both)];
    expect(names(new TransformerEncoderLayer(4, 2))).toEqual(encoder);
    const decoder = [...encoder, ...attention("multihead_attn"), ...both("norm3")];
    expect(names(new TransformerDecoderLayer(4, 2)).sort()).toEqual(decoder.sort());
    const whole = new Transformer(4, 2, { numEncoderLayers: 1, numDecoderLayers: 1 });
    const of = (prefix: string, names: string[]) => names.map((name) => `${prefix}.${name}`);
    const parts = [
      ...[...of("encoder.layers.0", encoder), ...of("encoder", both("norm"))],
      ...[...of("decoder.layers.0", decoder), ...of("decoder", both("norm"))],
    ];
    expect(names(whole).sort()).toEqual(parts.sort());
    const plain = new TransformerEncoderLayer(4, 2, { bias: false });
    expect(names(plain).some((name) => name.includes("bias"))).toBe(false);
  });

  it("have PyTorch's defaults", () => {
    const { encoder, decoder } = new Transformer(8, 2, { dimFeedforward: 8 });
    expect([encoder.layers.length, decoder.layers.length]).toEqual([6, 6]);
    const layer = new TransformerEncoderLayer(8, 2);
    expect(layer.linear1.weight.shape).toEqual([2048, 8]);
    expect([layer.dropout.p, layer.self_attn.dropout, layer.norm1.eps]).toEqual([0.1, 0.1, 1e-5]);
    expect([layer.normFirst, layer.self_attn.batchFirst]).toEqual([false, false]);
  });

  it("are stacked as copies, with weights of their own", () => {
    const layer = new TransformerEncoderLayer(4, 2, options()).eval();
    const { layers } = new TransformerEncoder(layer, 2, { norm: new LayerNorm(4) });
    for (const copy of layers) expect(copy.forward(x()).dataSync()).toAgreeWith(layer.forward(x()).dataSync());
    layers[0]!.linear1.weight.set(zeros([8, 4]));
    expect(layers[1]!.forward(x()).dataSync()).toAgreeWith(layer.forward(x()).dataSync());
    expect(layers[0]!.forward(x()).dataSync()).not.toAgreeWith(layer.forward(x()).dataSync());
  });

  it("take a mask of numbers as isCausal, and any activation", () => {
    const layer = new TransformerEncoderLayer(4, 2, { ...options(), activation: (x: Tensor) => x.tanh() }).eval();
    const srcMask = Transformer.generateSquareSubsequentMask(3);
    const [masked, causal] = [layer.forward(x(), { srcMask }), layer.forward(x(), { isCausal: true })];
    expect(causal.dataSync()).toAgreeWith(masked.dataSync(), { absolute: 1e-6, relative: 1e-5 });
    const other = new TransformerEncoderLayer(4, 2, options()).eval();
    expect(other.forward(x()).dataSync()).not.toAgreeWith(layer.forward(x()).dataSync());
  });

  it("begin as Xavier's uniform numbers", () => {
    const { encoder } = new Transformer(4, 2, { ...options(), dimFeedforward: 2000 });
    const bound = Math.sqrt(6 / 2004);
    const largest = Math.max(...encoder.layers[0]!.linear1.weight.dataSync().map(Math.abs));
    expect(largest).toBeLessThanOrEqual(Math.fround(bound));
    expect(largest).toBeGreaterThan(0.99 * bound);
  });

  it("drop in training alone, by their generator", () => {
    const made = () => new TransformerDecoderLayer(4, 2, { ...options(), dropout: 0.5 });
    const run = (layer: TransformerDecoderLayer) => layer.forward(x(), x()).dataSync();
    const layer = made();
    expect(run(layer)).toAgreeWith(run(made()));
    expect(run(layer)).not.toAgreeWith(run(layer));
    expect(run(layer.eval())).toAgreeWith(run(layer));
  });

  it("leave nothing behind but their results", () => {
    const small = { numEncoderLayers: 1, numDecoderLayers: 1, ...options() };
    const [model, given] = [new Transformer(4, 2, small), x()];
    const { tensors } = given.device.memory();
    noGrad(() => model.forward(given, given, { tgtIsCausal: true }));
    expect(given.device.memory().tensors).toBe(tensors + 1);
  });

  it("do the same compiled, on other numbers", () => {
    const model = new Transformer(4, 2, { numEncoderLayers: 1, numDecoderLayers: 1, ...options() }).eval();
    const run = (x: Tensor) => model.forward(x, x, { tgtIsCausal: true });
    const compiled = compile(run, { check: "never" });
    compiled(x());
    expect(compiled(x().neg()).dataSync()).toAgreeWith(run(x().neg()).dataSync());
  });

  const rows: [string, () => unknown, string][] = [
    ["heads that do not divide", () => new TransformerEncoderLayer(4, 3), "BAD_ARGUMENT"],
    ["another activation", () => new TransformerEncoderLayer(4, 2, { activation: "tanh" as "relu" }), "BAD_ARGUMENT"],
    ["a misspelt option", () => new Transformer(4, 2, { layers: 2 } as never), "BAD_ARGUMENT"],
    ["a stack of another layer", () => new TransformerEncoder(new LayerNorm(4) as never, 2), "BAD_ARGUMENT"],
    ["a misspelt mask", () => new TransformerEncoderLayer(4, 2).forward(x(), { mask: x() } as never), "BAD_ARGUMENT"],
    ["another width", () => new TransformerEncoderLayer(6, 2).forward(x()), "BAD_SHAPE"],
  ];
  it.each(rows)("reject %s", (_, body, code) => expectCode(code as "BAD_SHAPE", body));
});

/** Each hides the last place, of x or of the memory, from the first two. */
describe("what hides a place makes its numbers no matter", () => {
  const last = tensor([[0, 0, 1]], { dtype: "bool" });
  const mask = last.expand([3, 3]);
  const layers = () => {
    const encoderLayer = new TransformerEncoderLayer(4, 2, options()).eval();
    const decoderLayer = new TransformerDecoderLayer(4, 2, options()).eval();
    return {
      encoderLayer,
      decoderLayer,
      encoder: new TransformerEncoder(encoderLayer, 1).eval(),
      decoder: new TransformerDecoder(decoderLayer, 1).eval(),
      whole: new Transformer(4, 2, { numEncoderLayers: 1, numDecoderLayers: 1, ...options() }).eval(),
    };
  };
  type Run = (model: ReturnType<typeof layers>, x: Tensor, memory: Tensor, hides: boolean) => Tensor;

  const ofX: [string, Run][] = [
    ["srcMask of an encoder layer", (m, x, _, on) => m.encoderLayer.forward(x, on ? { srcMask: mask } : {})],
    [
      "srcKeyPaddingMask of an encoder layer",
      (m, x, _, on) => m.encoderLayer.forward(x, on ? { srcKeyPaddingMask: last } : {}),
    ],
    ["isCausal of an encoder layer", (m, x, _, on) => m.encoderLayer.forward(x, { isCausal: on })],
    ["mask of an encoder", (m, x, _, on) => m.encoder.forward(x, on ? { mask } : {})],
    ["srcKeyPaddingMask of an encoder", (m, x, _, on) => m.encoder.forward(x, on ? { srcKeyPaddingMask: last } : {})],
    ["isCausal of an encoder", (m, x, _, on) => m.encoder.forward(x, { isCausal: on })],
    [
      "tgtMask of a decoder layer",
      (m, x, memory, on) => m.decoderLayer.forward(x, memory, on ? { tgtMask: mask } : {}),
    ],
    [
      "tgtKeyPaddingMask of a decoder layer",
      (m, x, memory, on) => m.decoderLayer.forward(x, memory, on ? { tgtKeyPaddingMask: last } : {}),
    ],
    ["tgtIsCausal of a decoder layer", (m, x, memory, on) => m.decoderLayer.forward(x, memory, { tgtIsCausal: on })],
    ["tgtMask of a decoder", (m, x, memory, on) => m.decoder.forward(x, memory, on ? { tgtMask: mask } : {})],
    [
      "tgtKeyPaddingMask of a decoder",
      (m, x, memory, on) => m.decoder.forward(x, memory, on ? { tgtKeyPaddingMask: last } : {}),
    ],
    ["tgtIsCausal of a decoder", (m, x, memory, on) => m.decoder.forward(x, memory, { tgtIsCausal: on })],
    ["tgtMask of a transformer", (m, x, memory, on) => m.whole.forward(memory, x, on ? { tgtMask: mask } : {})],
    [
      "tgtKeyPaddingMask of a transformer",
      (m, x, memory, on) => m.whole.forward(memory, x, on ? { tgtKeyPaddingMask: last } : {}),
    ],
    ["tgtIsCausal of a transformer", (m, x, memory, on) => m.whole.forward(memory, x, { tgtIsCausal: on })],
  ];
  // A transformer's memory is made of all of src: each of two masks hides a part of the way.
  const ofMemory: [string, Run][] = [
    [
      "memoryMask of a decoder layer",
      (m, x, memory, on) => m.decoderLayer.forward(x, memory, on ? { memoryMask: mask } : {}),
    ],
    [
      "memoryKeyPaddingMask of a decoder layer",
      (m, x, memory, on) => m.decoderLayer.forward(x, memory, on ? { memoryKeyPaddingMask: last } : {}),
    ],
    [
      "memoryIsCausal of a decoder layer",
      (m, x, memory, on) => m.decoderLayer.forward(x, memory, { memoryIsCausal: on }),
    ],
    ["memoryMask of a decoder", (m, x, memory, on) => m.decoder.forward(x, memory, on ? { memoryMask: mask } : {})],
    [
      "memoryKeyPaddingMask of a decoder",
      (m, x, memory, on) => m.decoder.forward(x, memory, on ? { memoryKeyPaddingMask: last } : {}),
    ],
    ["memoryIsCausal of a decoder", (m, x, memory, on) => m.decoder.forward(x, memory, { memoryIsCausal: on })],
    [
      "srcMask of a transformer",
      (m, x, src, on) => m.whole.forward(src, x, on ? { srcMask: mask, memoryMask: mask } : { memoryMask: mask }),
    ],
    [
      "srcKeyPaddingMask of a transformer",
      (m, x, src, on) =>
        m.whole.forward(src, x, on ? { srcKeyPaddingMask: last, memoryMask: mask } : { memoryMask: mask }),
    ],
    ["srcIsCausal of a transformer", (m, x, src, on) => m.whole.forward(src, x, { srcIsCausal: on, memoryMask: mask })],
    [
      "memoryMask of a transformer",
      (m, x, src, on) => m.whole.forward(src, x, on ? { srcMask: mask, memoryMask: mask } : { srcMask: mask }),
    ],
    [
      "memoryKeyPaddingMask of a transformer",
      (m, x, src, on) =>
        m.whole.forward(src, x, on ? { srcMask: mask, memoryKeyPaddingMask: last } : { srcMask: mask }),
    ],
    [
      "memoryIsCausal of a transformer",
      (m, x, src, on) => m.whole.forward(src, x, { srcMask: mask, tgtIsCausal: true, memoryIsCausal: on }),
    ],
  ];

  it.each([
    ...ofX.map(([title, run]) => [title, run, false] as const),
    ...ofMemory.map(([title, run]) => [title, run, true] as const),
  ])("%s", (_, run, isMemory) => {
    const model = layers();
    const draw = (seed: number, places: number) => rand([1, places, 4], { generator: new Generator(seed) });
    const [one, other, memory] = [draw(1, 3), draw(2, 1), draw(3, 3)];
    const results = (hides: boolean) =>
      [one, concat([one.slice(0, 2, 1), other], 1)].map((x) => {
        const y = isMemory ? run(model, memory, x, hides) : run(model, x, memory, hides);
        return [...y.slice(0, 2, 1).dataSync()];
      });
    const [seen, seenOther] = results(false);
    expect(seenOther).not.toEqual(seen);
    const [hidden, hiddenOther] = results(true);
    expect(hiddenOther).toEqual(hidden);
  });

  it("generateSquareSubsequentMask has the dtype and the device that it is given", async () => {
    const device = await init("js");
    const made = Transformer.generateSquareSubsequentMask(2, { dtype: "f64", device });
    expect([made.dtype, made.device === device]).toEqual(["f64", true]);
    expect(made.tolist()).toEqual([
      [0, -Infinity],
      [0, 0],
    ]);
  });
});

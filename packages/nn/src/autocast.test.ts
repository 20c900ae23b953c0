import {
  autocast,
  compile,
  conv2d,
  cumprod,
  cumsum,
  expm1,
  flip,
  log1p,
  logsumexp,
  norm,
  prod,
  rsqrt,
  softplus,
  type Tensor,
  tensor,
} from "@opt/core";
import { type CallInput, expectCode, Random, storedSuite } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import * as nn from "./index";

const { crossEntropy, LayerNorm, Linear, LSTM, mseLoss, scaledDotProductAttention } = nn;

const random = new Random(7);
const given = (...shape: number[]): CallInput => ({
  values: Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => 2 * random.uniform() - 1),
  shape,
  dtype: "f32",
  requiresGrad: true,
});

/** One rounding to 16 bits for each product, so of a result 2^-7, of what follows from several a little more. */
const BOUND = { absolute: 0.02, relative: 0.02 };
const labels = tensor([0, 2, 1, 1], { dtype: "i32" });
const layer = new LayerNorm(6);
const auto =
  (run: (...xs: Tensor[]) => Tensor) =>
  (...xs: Tensor[]) =>
    autocast("bf16", () => run(...xs));
const python = (line: string) => `with torch.autocast('cpu', dtype=torch.bfloat16): y = ${line};;y`;

await storedSuite(new URL("../testing/goldens/autocast.json", import.meta.url), [
  {
    name: "a product, an activation and a loss",
    inputs: [given(4, 6), given(5, 6), given(3, 5)],
    code: python("F.cross_entropy(F.gelu(a @ b.T) @ c.T, torch.tensor([0, 2, 1, 1]))"),
    run: auto((x, w, v) =>
      crossEntropy(x.matmul(w, { transposeB: true }).gelu().matmul(v, { transposeB: true }), labels),
    ),
    tolerance: BOUND,
  },
  {
    name: "a convolution with a bias, in 16 bits",
    inputs: [given(2, 2, 5, 5), given(3, 2, 3, 3), given(3)],
    code: python("F.conv2d(a, b, c, padding=1)"),
    run: auto((x, w, b) => conv2d(x, w, b, { padding: 1 })),
    tolerance: BOUND,
  },
  {
    name: "attention, in 16 bits",
    inputs: [given(1, 2, 5, 4), given(1, 2, 5, 4), given(1, 2, 5, 4)],
    code: python("F.scaled_dot_product_attention(a, b, c, is_causal=True)"),
    run: auto((q, k, v) => scaledDotProductAttention(q, k, v, { isCausal: true })),
    tolerance: BOUND,
  },
  {
    name: "a residual stream in float32",
    inputs: [given(4, 6), given(6, 6)],
    code: python("F.mse_loss(F.layer_norm(a + a @ b, [6]), a)"),
    run: auto((x, w) => mseLoss(layer.forward(x.add(x.matmul(w))), x)),
    tolerance: BOUND,
  },
]);

/** PyTorch 2.13's losses of 16-bit floats under autocast: scores x, others y, probabilities p. Most overflow in f16. */
const LOSSES: Record<string, [(x: Tensor, y: Tensor, p: Tensor) => Tensor, number]> = {
  bceWithLogits: [(x, _, p) => nn.bceWithLogits(x, p, { posWeight: tensor(0.3, { dtype: "f16" }) }), 137.67363],
  binaryCrossEntropy: [(_, y, p) => nn.binaryCrossEntropy(p, y.minimum(1)), 0.5586143],
  cosineEmbeddingLoss: [(x, y) => nn.cosineEmbeddingLoss(x, y, tensor([1, -1])), 0.55278647],
  crossEntropy: [(x) => crossEntropy(x, [0, 1]), 50.15663],
  ctcLoss: [(x) => nn.ctcLoss(flip(x, 1).logSoftmax().to("f16").reshape([2, 1, 2]), [[1]], [2], [1]), 1.3134766],
  gaussianNllLoss: [(x, y) => nn.gaussianNllLoss(x, y, x), 88.861176],
  hingeEmbeddingLoss: [(x, y) => nn.hingeEmbeddingLoss(x, y.mul(0).add(1)), 175.75],
  multiLabelMarginLoss: [
    (x) =>
      nn.multiLabelMarginLoss(x, [
        [0, -1],
        [1, 0],
      ]),
    25.25,
  ],
  multiLabelSoftMarginLoss: [(x, _, p) => nn.multiLabelSoftMarginLoss(x, p), 137.731995],
  softMarginLoss: [(x) => nn.softMarginLoss(x, x.mul(0).sub(1)), 175.860047],
  huberLoss: [(x, y) => nn.huberLoss(x, y), 174.5625],
  klDiv: [(x, _, p) => nn.klDiv(x, p), -38.362022],
  l1Loss: [(x, y) => nn.l1Loss(x, y), 174.8125],
  marginRankingLoss: [(x, y) => nn.marginRankingLoss(x, y, x.mul(0).sub(1)), 174.8125],
  mseLoss: [(x, y) => mseLoss(x, y), 62375.078],
  multiMarginLoss: [(x) => nn.multiMarginLoss(x, [0, 1], { p: 2 }), 2550.25],
  nllLoss: [(x) => nn.nllLoss(x, [0, 1]), -151],
  poissonNllLoss: [(x, y) => nn.poissonNllLoss(y.mul(8), x, { full: true }), 2222632.5],
  smoothL1Loss: [(x, y) => nn.smoothL1Loss(x, y), 174.5625],
  tripletMarginLoss: [(x, y) => nn.tripletMarginLoss(x.mul(30), y, x), 250.75],
};

/** Of [300, 400] in f16, what is beyond its range or digits: ops of torch.autocast's list for float32. */
const IN_FLOAT32: Record<string, [(x: Tensor) => Tensor, number]> = {
  cosineSimilarity: [(x) => nn.cosineSimilarity(x, x.mul(-1), { axis: 0 }), -1],
  cumprod: [(x) => cumprod(x, 0), 120_000],
  cumsum: [(x) => cumsum(x.mul(160), 0), 112_000],
  exp: [(x) => x.div(20).exp(), Math.exp(20)],
  expm1: [(x) => expm1(x.div(20)), Math.exp(20) - 1],
  log: [(x) => x.log(), Math.log(400)],
  log1p: [(x) => log1p(x), Math.log(401)],
  logsumexp: [(x) => logsumexp(x.div(-100)), Math.log(Math.exp(-3) + Math.exp(-4))],
  norm: [(x) => norm(x.mul(160)), 80_000],
  pow: [(x) => x.pow(2), 160_000],
  prod: [(x) => prod(x), 120_000],
  rsqrt: [(x) => rsqrt(x.sub(100)), 300 ** -0.5],
  softplus: [(x) => softplus(x.sub(401)), Math.log1p(Math.exp(-1))],
  square: [(x) => x.square(), 160_000],
};

it.each(Object.entries(IN_FLOAT32))("computes %s of 16 bits in float32 within autocast", (_, [run, expected]) => {
  const x = tensor([300, 400], { dtype: "f16", requiresGrad: true });
  const result = autocast("f16", () => run(x));
  expect(result.dtype).toBe("f32");
  expect(result.dataSync().at(-1)! / expected).toBeCloseTo(1, 5);
  result.sum().backward();
  expect(x.grad!.dtype).toBe("f16");
  expect(run(x).dtype).toBe("f16");
});

describe("a loss within autocast", () => {
  it.each(Object.entries(LOSSES))("computes %s of 16 bits in float32", (_, [loss, expected]) => {
    const half = (values: number[][]) => tensor(values, { dtype: "f16", requiresGrad: true });
    const [x, y] = [
      half([
        [300, 400],
        [1, 2],
      ]),
      half([
        [0.5, 0.25],
        [1, 2],
      ]),
    ];
    const p = half([
      [0.1, 0.3],
      [0.7, 0.9],
    ]);
    const result = autocast("f16", () => loss(x, y, p));
    expect(result.dtype).toBe("f32");
    expect(result.dataSync()[0]! / expected).toBeCloseTo(1, 5);
    result.backward();
    for (const { grad } of [x, y, p]) expect([undefined, null, "f16"]).toContain(grad?.dtype);
    expect(loss(x, y, p).dtype).toBe("f16");
  });

  it("is in the table above", () => {
    const names = Object.keys(nn).filter((name) => /^[a-z].*(Loss|ntropy|Logits|klDiv)$/.test(name));
    expect(Object.keys(LOSSES)).toEqual(expect.arrayContaining(names));
  });
});

describe("autocast", () => {
  const x = tensor([[1, 2]]);

  it("gives 16 bits where it multiplies, and float32 where it normalises", () => {
    const layer = new Linear(2, 2);
    const [product, normal, double] = autocast("bf16", () => {
      const y = layer.forward(x);
      return [y, y.softmax(), x.to("f64").matmul(x.to("f64"), { transposeB: true })];
    });
    expect([product.dtype, normal.dtype, double.dtype]).toEqual(["bf16", "f32", "f64"]);
    expect(layer.forward(x).dtype).toBe("f32");
    const off = autocast("bf16", () => autocast(null, () => layer.forward(x)));
    expect(off.dtype).toBe("f32");
  });

  it("leaves float32 gradients on float32 parameters", () => {
    const layer = new Linear(2, 2);
    autocast("f16", () => layer.forward(x).sum()).backward();
    expect([layer.weight.grad!.dtype, layer.bias!.grad!.dtype]).toEqual(["f32", "f32"]);
  });

  it("runs recurrent layers", () => {
    const layer = new LSTM(2, 3);
    const [output] = autocast("bf16", () => layer.forward(x));
    const [plain] = layer.forward(x);
    expect(output.to("f32").dataSync()).toAgreeWith(plain.dataSync(), BOUND);
  });

  it("is part of a compiled function's signature", () => {
    const product = compile((a: Tensor) => a.matmul(a, { transposeB: true }));
    const dtypes = [null, "bf16", null, "bf16"].map((dtype) => autocast(dtype as null, () => product(x)).dtype);
    expect(dtypes).toEqual(["f32", "bf16", "f32", "bf16"]);
  });

  it("throws for another dtype, and for an asynchronous body", () => {
    expectCode("BAD_ARGUMENT", () => autocast("f64" as "bf16", () => x));
    expectCode("BAD_ARGUMENT", () => autocast("bf16", async () => x));
  });
});

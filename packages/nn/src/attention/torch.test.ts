// Attention in random configurations, in f32 and f64, against PyTorch: values, weights and gradients, with masks.
import { askTorch, type CallInput, expectAnswer, type TorchCall, torchPython, withoutTorch } from "@opt/testkit";
import { describe, it } from "vitest";
import { MultiheadAttention, scaledDotProductAttention } from "../index";
import { holding, RandomInputs } from "../testing/random-inputs";

const make = new RandomInputs(13);
const calls: TorchCall[] = [];
const python = (value: boolean) => (value ? "True" : "False");
const loose = { f32: { absolute: 1e-5, relative: 1e-4 }, f64: { absolute: 1e-10, relative: 1e-10 } } as const;

function mask(shape: readonly number[], dtype: "f32" | "f64", ofBool: boolean): CallInput {
  if (!ofBool) return make.numbers(shape, dtype);
  const values = Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => make.random.below(2));
  return { values, shape, dtype: "bool" };
}

for (let i = 0; i < 200; i++) {
  const dtype = i % 2 === 0 ? "f32" : "f64";
  const [batch, heads, queries, keys] = [
    make.between(1, 3),
    make.between(1, 3),
    make.between(1, 5),
    make.between(1, 5),
  ];
  const [width, columns] = [make.between(1, 4), make.between(1, 4)];
  const [isMasked, ofBool] = [make.flip(), make.flip()];
  const isCausal = !isMasked && make.flip();
  const scale = make.random.pick([undefined, 0.3]);
  const leading = make.flip() ? [batch, heads] : [batch];
  calls.push({
    name: `${i}: scaledDotProductAttention [${leading}], ${isMasked ? (ofBool ? "bool mask" : "mask") : isCausal ? "causal" : "all"}, ${dtype}`,
    inputs: [
      make.numbers([...leading, queries, width], dtype),
      make.numbers([...leading, keys, width], dtype),
      make.numbers([...leading, keys, columns], dtype),
      mask([queries, keys], dtype, ofBool),
    ],
    code: `F.scaled_dot_product_attention(a, b, c, ${isMasked ? "d" : "None"}, is_causal=${python(isCausal)}, scale=${scale ?? "None"})`,
    run: (a, b, c, d) =>
      scaledDotProductAttention(a!, b!, c!, { isCausal, ...(scale && { scale }), ...(isMasked && { attnMask: d }) }),
    tolerance: loose[dtype],
  });

  const size = heads * make.between(1, 3);
  const [batchFirst, padded, average] = [make.flip(), make.flip(), make.flip()];
  const places = (length: number) => make.numbers(batchFirst ? [batch, length, size] : [length, batch, size], dtype);
  const padding = {
    values: Array.from({ length: batch * keys }, (_, j) => (j % keys === 0 ? 0 : make.random.below(2))),
    shape: [batch, keys],
    dtype: "bool",
  } as const;
  // The first key is seen by all: PyTorch gives NaN to who sees none.
  const banned = {
    values: Array.from({ length: queries * keys }, (_, j) => (j % keys === 0 ? 0 : make.random.below(2))),
    shape: [queries, keys],
    dtype: "bool",
  } as const;
  const of = (masked: boolean, name: string) => (masked ? name : "None");
  calls.push({
    name: `${i}: MultiheadAttention ${size} in ${heads}${batchFirst ? ", batch first" : ""}${padded ? ", padded" : ""}${isMasked ? ", masked" : ""}, ${dtype}`,
    inputs: [
      ...[places(queries), places(keys), places(keys)],
      ...[make.numbers([3 * size, size], dtype, { low: -0.7, high: 0.7 }), make.numbers([3 * size], dtype)],
      ...[make.numbers([size, size], dtype), make.numbers([size], dtype), padding, banned],
    ],
    code: [
      `m = nn.MultiheadAttention(${size}, ${heads}, batch_first=${python(batchFirst)}).to(a.dtype)`,
      "m._parameters.clear(); m.out_proj._parameters.clear()",
      "m.__dict__.update(in_proj_weight=d, in_proj_bias=e); m.out_proj.__dict__.update(weight=f, bias=g)",
      `list(m(a, b, c, key_padding_mask=${of(padded, "h")}, attn_mask=${of(isMasked, "i")}, average_attn_weights=${python(average)}))`,
    ].join(";;"),
    run: (a, b, c, d, e, f, g, h, j) => {
      const layer = holding(new MultiheadAttention(size, heads, { batchFirst, dtype }), {
        in_proj_weight: d,
        in_proj_bias: e,
      });
      holding(layer.out_proj, { weight: f, bias: g });
      const [y, weights] = layer.forward(a!, b!, c!, {
        averageAttnWeights: average,
        ...(padded && { keyPaddingMask: h }),
        ...(isMasked && { attnMask: j }),
      });
      return [y, weights!];
    },
    tolerance: loose[dtype],
  });
}

describe.skipIf(torchPython === undefined)(`as PyTorch${withoutTorch}`, () => {
  const answers = torchPython === undefined ? [] : askTorch(torchPython, calls);
  it.each(calls.map((call, i) => [call.name, call, answers[i]!] as const))("%s", (_, call, answer) =>
    expectAnswer(call, answer),
  );
});

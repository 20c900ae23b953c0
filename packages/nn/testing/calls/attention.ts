/** Calls of attention, of which PyTorch knows the values, the weights and the gradients, with masks. */
import type { CallInput, TorchCall } from "@opt/testkit";
import { MultiheadAttention, scaledDotProductAttention } from "../../src/index";
import { layerCall } from "../layer-call";
import { python, RandomInputs } from "../random-inputs";

const loose = { f32: { absolute: 1e-5, relative: 1e-4 }, f64: { absolute: 1e-10, relative: 1e-10 } } as const;

/** Both kinds in `count` random configurations. */
export function attentionCalls(count: number): TorchCall[] {
  const make = new RandomInputs(13);
  return Array.from({ length: count }, (_, i) => {
    const dtype = i % 2 === 0 ? "f32" : "f64";
    const [batch, heads] = [make.between(1, 3), make.between(1, 3)];
    const places = [make.between(1, 5), make.between(1, 5)] as const;
    return [dotProduct(make, i, dtype, [batch, heads], places), multihead(make, i, dtype, [batch, heads], places)];
  }).flat();
}

type Pair = readonly [number, number];

function dotProduct(make: RandomInputs, i: number, dtype: "f32" | "f64", batches: Pair, places: Pair): TorchCall {
  const [queries, keys] = places;
  const [width, columns] = [make.between(1, 4), make.between(1, 4)];
  const [isMasked, ofBool] = [make.flip(), make.flip()];
  const isCausal = !isMasked && make.flip();
  const scale = make.random.pick([undefined, 0.3]);
  const leading = make.flip() ? batches : batches.slice(0, 1);
  const chosen = { ...make.whole(places, 2), dtype: "bool" } as const;
  return {
    name: `${i}: scaledDotProductAttention [${leading}], ${isMasked ? (ofBool ? "bool mask" : "mask") : isCausal ? "causal" : "all"}, ${dtype}`,
    inputs: [
      make.numbers([...leading, queries, width], dtype),
      make.numbers([...leading, keys, width], dtype),
      make.numbers([...leading, keys, columns], dtype),
      ofBool ? chosen : make.numbers(places, dtype),
    ],
    code: `F.scaled_dot_product_attention(a, b, c, ${isMasked ? "d" : "None"}, is_causal=${python(isCausal)}, scale=${scale ?? "None"})`,
    run: (a, b, c, d) =>
      scaledDotProductAttention(a!, b!, c!, { isCausal, ...(scale && { scale }), ...(isMasked && { attnMask: d }) }),
    tolerance: loose[dtype],
  };
}

function multihead(make: RandomInputs, i: number, dtype: "f32" | "f64", batches: Pair, places: Pair): TorchCall {
  const [[batch, heads], [queries, keys]] = [batches, places];
  const size = heads * make.between(1, 3);
  const [batchFirst, padded, isMasked] = [make.flip(), make.flip(), make.flip()];
  const [needWeights, averageAttnWeights] = [make.flip(), make.flip()];
  const x = (length: number) => make.numbers(batchFirst ? [batch, length, size] : [length, batch, size], dtype);
  // The first key is seen by all: PyTorch gives NaN to who sees none.
  const seesFirst = (rows: number): CallInput => {
    const { values, shape } = make.whole([rows, keys], 2);
    return { values: Array.from(values, (value, j) => (j % keys === 0 ? 0 : value)), shape, dtype: "bool" };
  };
  const of = (given: boolean, name: string) => (given ? name : "None");
  return layerCall(make, {
    name: `${i}: MultiheadAttention ${size} in ${heads}${batchFirst ? ", batch first" : ""}${padded ? ", padded" : ""}${isMasked ? ", masked" : ""}`,
    torch: `nn.MultiheadAttention(${size}, ${heads}, batch_first=${python(batchFirst)})`,
    make: (place) => new MultiheadAttention(size, heads, { batchFirst, ...place }),
    dtype,
    inputs: [x(queries), x(keys), x(keys), seesFirst(batch), seesFirst(queries)],
    args: `a, b, c, key_padding_mask=${of(padded, "d")}, attn_mask=${of(isMasked, "e")}, need_weights=${python(needWeights)}, average_attn_weights=${python(averageAttnWeights)}`,
    results: needWeights ? "y" : "y[:1]",
    forward: (call, a, b, c, d, e) => {
      const masks = { ...(padded && { keyPaddingMask: d! }), ...(isMasked && { attnMask: e! }) };
      const [y, weights] = call(a!, b!, c!, { needWeights, averageAttnWeights, ...masks });
      return needWeights ? [y, weights] : y;
    },
  });
}

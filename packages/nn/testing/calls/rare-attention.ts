/** Rare arguments of attention: as many queries as keys or not, masks of all shapes and dtypes, causal ones too, all weights dropped. */
import type { CallInput, Sweep, TorchCall } from "@opt/testkit";
import * as nn from "../../src/index";
import { layerCall } from "../layer-call";
import { python, RandomInputs } from "../random-inputs";

const LOOSE = { f32: { absolute: 1e-5, relative: 1e-4 }, f64: { absolute: 1e-10, relative: 1e-10 } } as const;
/** PyTorch's fused attention has no second gradients. */
const PLAIN = "torch.backends.cuda.enable_flash_sdp(False)";

const dtypeOf = (i: number) => (i % 3 === 2 ? "f32" : "f64");

export function rareAttention(count: number): Sweep {
  const make = new RandomInputs(1301);
  const times = (of: (make: RandomInputs, i: number) => TorchCall) =>
    Array.from({ length: count }, (_, i) => of(make, i));
  return {
    "scaledDotProductAttention, causal": times(causal),
    "scaledDotProductAttention, masked": times(masked),
    "MultiheadAttention, masked": times(multihead),
  };
}

/** Bool, false where a place is not seen; the first key is seen by all. */
function seen(make: RandomInputs, shape: readonly number[], hides: 0 | 1): CallInput {
  const { values } = make.whole(shape, 2);
  const keys = shape.at(-1)!;
  return { values: Array.from(values, (value, i) => (i % keys === 0 ? 1 - hides : value)), shape, dtype: "bool" };
}

const places = (make: RandomInputs) => make.random.pick([1, 2, 3, 5, 9, 17, 40]);

/** Batches that are alike go to one kernel, those that broadcast to products. */
function causal(make: RandomInputs, i: number): TorchCall {
  const dtype = dtypeOf(i);
  const [queries, keys, width, columns] = [places(make), places(make), make.between(1, 4), make.between(1, 4)];
  const leading = make.random.pick([[], [2], [2, 3]]);
  const other = make.flip() ? leading : leading.map(() => 1);
  const scale = make.random.pick([null, 0.3, 2]);
  return {
    name: `${i}: ${queries} queries and ${keys} keys of [${leading}] and [${other}], ${dtype}`,
    inputs: [
      make.numbers([...leading, queries, width], dtype),
      make.numbers([...other, keys, width], dtype),
      make.numbers([...other, keys, columns], dtype),
    ],
    code: `${PLAIN};;F.scaled_dot_product_attention(a, b, c, is_causal=True, scale=${python(scale)})`,
    run: (a, b, c) => nn.scaledDotProductAttention(a!, b!, c!, { isCausal: true, ...(scale && { scale }) }),
    second: dtype === "f64" && queries * keys < 100,
    tolerance: LOOSE[dtype],
  };
}

function masked(make: RandomInputs, i: number): TorchCall {
  const dtype = dtypeOf(i);
  const [queries, keys, width, columns] = [places(make), places(make), make.between(1, 4), make.between(1, 4)];
  const leading = [2, 3];
  const shape = make.random.pick([
    [queries, keys],
    [1, keys],
    [3, queries, keys],
    [2, 1, queries, keys],
    [2, 1, 1, keys],
  ]);
  const ofBool = make.flip();
  const dropped = make.random.below(6) === 0;
  return {
    name: `${i}: ${queries} queries, ${keys} keys, ${ofBool ? "bool" : "float"} mask [${shape}]${dropped ? ", all dropped" : ""}, ${dtype}`,
    inputs: [
      make.numbers([...leading, queries, width], dtype),
      make.numbers([...leading, keys, width], dtype),
      make.numbers([...leading, keys, columns], dtype),
      ofBool ? seen(make, shape, 0) : make.numbers(shape, dtype),
    ],
    code: `${PLAIN};;F.scaled_dot_product_attention(a, b, c, d, dropout_p=${dropped ? 1 : 0})`,
    run: (a, b, c, d) => nn.scaledDotProductAttention(a!, b!, c!, { attnMask: d!, dropoutP: dropped ? 1 : 0 }),
    second: dtype === "f64" && queries * keys < 100 && !dropped,
    tolerance: LOOSE[dtype],
  };
}

function multihead(make: RandomInputs, i: number): TorchCall {
  const dtype = dtypeOf(i);
  const [batch, heads] = [make.between(1, 3), make.between(1, 3)];
  const [queries, keys, size] = [make.between(1, 5), make.between(1, 6), heads * make.between(1, 3)];
  const [batchFirst, bias, needWeights, averageAttnWeights] = [make.flip(), make.flip(), make.flip(), make.flip()];
  const single = make.random.below(4) === 0;
  const rows = single ? 1 : batch;
  const x = (length: number) =>
    make.numbers(single ? [length, size] : batchFirst ? [batch, length, size] : [length, batch, size], dtype);
  // PyTorch's causal hint comes with a mask, which it may leave unread: both say the same here.
  const kind = make.random.pick(["none", "causal", "matrix", "heads"] as const);
  const ofBool = make.flip();
  const shape = kind === "heads" ? [rows * heads, queries, keys] : [queries, keys];
  const upper = {
    values: Array.from({ length: queries * keys }, (_, at) => Number(at % keys > Math.floor(at / keys))),
  };
  const mask: CallInput =
    kind === "causal" ? { ...upper, shape, dtype: "bool" } : ofBool ? seen(make, shape, 1) : make.numbers(shape, dtype);
  const padded = make.flip();
  const padding = seen(make, single ? [keys] : [batch, keys], 1);
  const dropout = make.random.below(6) === 0 ? 1 : 0;
  const code = `attn_mask=${kind === "none" ? "None" : "d"}, key_padding_mask=${padded ? "e" : "None"}, is_causal=${python(kind === "causal")}, need_weights=${python(needWeights)}, average_attn_weights=${python(averageAttnWeights)}`;
  const call = layerCall(make, {
    name: `${i}: ${size} in ${heads} heads, ${code}, dropout ${dropout}${batchFirst ? ", batch first" : ""}`,
    torch: `nn.MultiheadAttention(${size}, ${heads}, dropout=${dropout}, bias=${python(bias)}, batch_first=${python(batchFirst)})`,
    make: (place) => new nn.MultiheadAttention(size, heads, { dropout, bias, batchFirst, ...place }),
    dtype,
    inputs: [x(queries), x(keys), x(keys), mask, padding],
    args: `a, b, c, ${code}`,
    results: needWeights ? "y" : "y[:1]",
    forward: (call, a, b, c, d, e) => {
      const masks = {
        ...(kind === "causal" ? { isCausal: true } : kind === "none" ? {} : { attnMask: d! }),
        ...(padded && { keyPaddingMask: e! }),
      };
      const [y, weights] = call(a!, b!, c!, { needWeights, averageAttnWeights, ...masks });
      return needWeights ? [y, weights] : y;
    },
    second: dtype === "f64" && dropout === 0,
  });
  return { ...call, code: `${PLAIN};;${call.code}` };
}

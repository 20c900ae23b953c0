/** Growth by layers that have weights of their own. */
import { sizeOf } from "../numbers";
import type { Shape } from "../program";
import type { Value } from "./draft";
import { type Growth, MOST } from "./growth";

/** A layer of its own for a value. */
export const LAYERS: readonly Growth[] = [
  (draft, x) => {
    if (x.shape.length === 0 || draft.isEmpty(x)) return null;
    const [inner, outer] = [x.shape.at(-1)!, draft.random.pick([1, 2, 3, 5])];
    const bias = draft.chance(0.7);
    const [layer, weights] = draft.layer(
      "Linear",
      [inner, outer],
      x.dtype,
      { weight: [outer, inner], ...(bias && { bias: [outer] }) },
      { bias },
    );
    return draft.op("Linear", [x, ...weights], { bound: x.bound * inner + 1 }, { layer });
  },
  (draft, x) => {
    if (x.shape.length !== 4 || x.shape[2]! < 2 || x.shape[3]! < 2 || draft.isEmpty(x)) return null;
    const [channels, out] = [x.shape[1]!, draft.random.pick([1, 2, 3])];
    const window = { stride: draft.random.pick([1, 2]), padding: draft.random.pick([0, 1]) };
    const bias = draft.chance(0.7);
    const [layer, weights] = draft.layer(
      "Conv2d",
      [channels, out, 2],
      x.dtype,
      { weight: [out, channels, 2, 2], ...(bias && { bias: [out] }) },
      { bias, ...window },
    );
    return draft.op("Conv2d", [x, ...weights], { bound: x.bound * 4 * channels + 1 }, { layer, ...window });
  },
  (draft, x) => {
    if (x.shape.length === 0 || draft.isEmpty(x) || x.shape.at(-1)! < 3) return null;
    const shape = x.shape.slice(-1);
    const bias = draft.chance(0.7);
    const [layer, weights] = draft.layer(
      "LayerNorm",
      shape,
      x.dtype,
      { weight: shape, ...(bias && { bias: shape }) },
      { bias },
    );
    return draft.op("LayerNorm", [x, ...weights], { bound: 4 * Math.sqrt(shape[0]!) + 1 }, { layer });
  },
  (draft) => {
    const [count, width] = [draft.random.pick([1, 3, 6]), draft.random.pick([1, 2, 5])];
    const indices = draft.leaf("data", draft.random.pick<Shape>([[3], [2, 2], []]), "i32", {
      ...draft.fill("whole"),
      below: count,
    });
    const shapes = { weight: [count, width] };
    const sparse = draft.chance(0.5);
    const [layer, weights] = draft.layer("Embedding", [count, width], draft.floatDType(), shapes, { sparse });
    return draft.op("Embedding", [indices, ...weights], { bound: 1 }, { layer });
  },
  (draft, x) => {
    const p = draft.random.pick([0.25, 0.5, 0.5, 0, 1]);
    const [layer] = draft.layer("Dropout", [p], x.dtype, {});
    return draft.op("Dropout", [x], { bound: 4 * x.bound, low: Math.min(x.low, 0) }, { layer });
  },
  (draft, x) => {
    const rank = x.shape.length;
    if (rank < 2 || rank > 4 || draft.isEmpty(x) || sizeOf(x.shape) < 3 * x.shape[1]!) return null;
    const kind = rank === 4 ? "BatchNorm2d" : "BatchNorm1d";
    const shape = [x.shape[1]!];
    const trackRunningStats = draft.chance(0.5);
    const momentum = draft.random.pick([0.1, 0.5, null]);
    const options = { trackRunningStats, ...(trackRunningStats && { momentum }) };
    const [layer, weights] = draft.layer(kind, shape, x.dtype, { weight: shape, bias: shape }, options);
    if (trackRunningStats) {
      draft.buffers(layer, {
        running_mean: [shape, x.dtype, draft.fill("small")],
        running_var: [shape, x.dtype, draft.fill("ones")],
        num_batches_tracked: [[], "i32", { ...draft.fill("whole"), below: 1 }],
      });
    }
    // Running statistics of other numbers bound nothing in evaluation.
    const bound = 4 * Math.sqrt(sizeOf(x.shape) / shape[0]!) + (trackRunningStats ? 4 * x.bound : 1);
    return draft.op(kind, [x, ...weights], { bound }, { layer });
  },
  (draft, x) => {
    const [batch, channels] = x.shape;
    if (x.shape.length < 3 || draft.isEmpty(x)) return null;
    const groups = draft.random.pick([1, channels!, ...(channels! % 2 === 0 ? [2] : [])]);
    const count = sizeOf(x.shape) / batch! / groups;
    if (count < 3) return null;
    const shapes = { weight: [channels!], bias: [channels!] };
    const [layer, weights] = draft.layer("GroupNorm", [groups, channels!], x.dtype, shapes);
    return draft.op("GroupNorm", [x, ...weights], { bound: 4 * Math.sqrt(count) + 1 }, { layer, groups });
  },
  (draft, x) => {
    if (x.shape.length === 0 || draft.isEmpty(x)) return null;
    const shape = x.shape.slice(-1);
    const eps = 0.01;
    const [layer, weights] = draft.layer("RMSNorm", shape, x.dtype, { weight: shape }, { eps });
    return draft.op("RMSNorm", [x, ...weights], { bound: 4 * Math.sqrt(shape[0]!) }, { layer, eps });
  },
  (draft, x) => {
    if (x.shape.length !== 3 || x.shape[2]! < 2 || draft.isEmpty(x)) return null;
    const [channels, out, stride] = [x.shape[1]!, draft.random.pick([1, 2]), draft.random.pick([1, 2])];
    const shapes = { weight: [out, channels, 2], bias: [out] };
    const [layer, weights] = draft.layer("Conv1d", [channels, out, 2], x.dtype, shapes, { stride });
    return draft.op("Conv1d", [x, ...weights], { bound: x.bound * 2 * channels + 1 }, { layer, stride });
  },
  (draft, x) => {
    if (x.shape.length !== 4 || draft.isEmpty(x) || sizeOf(x.shape) * 4 > MOST) return null;
    const [channels, out, stride] = [x.shape[1]!, draft.random.pick([1, 2]), draft.random.pick([1, 2])];
    const shapes = { weight: [channels, out, 2, 2], bias: [out] };
    const [layer, weights] = draft.layer("ConvTranspose2d", [channels, out, 2], x.dtype, shapes, { stride });
    return draft.op("ConvTranspose2d", [x, ...weights], { bound: x.bound * 4 * channels + 1 }, { layer, stride });
  },
  recurrent("LSTM", 4),
  recurrent("GRU", 3),
  (draft, x) => {
    const width = x.shape.at(-1)!;
    if (x.shape.length < 2 || x.shape.length > 3 || draft.isEmpty(x) || isShort(x)) return null;
    if (x.shape[0]! > 64 || 4 * width * width > MOST) return null; // each place sees all, and so does each feature
    const heads = draft.random.pick(width % 2 === 0 ? [1, 2] : [1]);
    const shapes = {
      in_proj_weight: [3 * width, width],
      in_proj_bias: [3 * width],
      "out_proj.weight": [width, width],
      "out_proj.bias": [width],
    };
    const [layer, weights] = draft.layer("MultiheadAttention", [width, heads], x.dtype, shapes);
    const isCausal = draft.chance(0.5);
    return draft.op(
      "MultiheadAttention",
      [x, ...weights],
      { bound: (x.bound * width + 1) * width + 1 },
      { layer, heads, isCausal },
    );
  },
];

/** Of many roundings on the way 16 bits leave too little to compare. */
const isShort = ({ dtype }: Value): boolean => dtype === "f16" || dtype === "bf16";

function recurrent(kind: "LSTM" | "GRU", gates: number): Growth {
  return (draft, x) => {
    if (x.shape.length < 2 || x.shape.length > 3 || draft.isEmpty(x) || isShort(x) || x.shape[0]! > 8) return null;
    const [width, hidden] = [x.shape.at(-1)!, draft.random.pick([1, 2, 3, 5])];
    const bias = draft.chance(0.7);
    const shapes = {
      weight_ih_l0: [gates * hidden, width],
      weight_hh_l0: [gates * hidden, hidden],
      ...(bias && { bias_ih_l0: [gates * hidden], bias_hh_l0: [gates * hidden] }),
    };
    const [layer, weights] = draft.layer(kind, [width, hidden], x.dtype, shapes, { bias });
    return draft.op(kind, [x, ...weights], { bound: 1, low: -1 }, { layer, hidden });
  };
}

/** Attention of queries and keys that differ in number, and recurrent layers on top of each other. */
import type { Options, Shape } from "../../program";
import type { Draft, Value } from "../draft";
import { backward, slope, sumOf, type Theme, weighed } from "./theme";

/** By one kernel, by ops, with a mask, or in heads. */
export function attending(draft: Draft): Theme {
  const { random } = draft;
  const queries = random.pick([1, 2, 3, 5]);
  const keys = draft.chance(0.2) ? queries : random.pick([1, 2, 4, 7]);
  if (draft.chance(0.45)) return inHeads(draft, queries, keys);
  const [width, columns] = [random.pick([1, 2, 3]), random.pick([1, 2])];
  const batch = random.pick<Shape>([[], [2], [1, 2]]);
  const dtype = draft.floatDType();
  const small = (...shape: number[]) => draft.leaf("parameter", [...batch, ...shape], dtype, draft.fill("small"));
  const inputs = [small(queries, width), small(keys, width), small(keys, columns)];
  const masked = random.pick(["none", "none", "none", "bool", "added"]);
  if (masked === "bool") inputs.push(draft.leaf("data", [queries, keys], "bool", { ...draft.fill("whole"), below: 2 }));
  if (masked === "added") inputs.push(draft.leaf("data", [queries, keys], dtype));
  const options = {
    call: "scaledDotProductAttention",
    isCausal: masked === "none" && draft.chance(0.75),
    isBool: masked === "bool",
  };
  const loss = weighed(draft, draft.op("scaledDotProductAttention", inputs, { bound: 1 }, options));
  if (draft.chance(0.3)) {
    const first = slope(draft, loss, random.pick(inputs.slice(0, 3)));
    backward(draft, sumOf(draft, draft.op("mul", [first, first], {})));
  } else backward(draft, loss);
  return { results: [loss.id] };
}

function inHeads(draft: Draft, queries: number, keys: number): Theme {
  const { random } = draft;
  const heads = random.pick([1, 2]);
  const width = heads * random.pick([1, 2]);
  const dtype = draft.floatDType();
  const shapes = {
    in_proj_weight: [3 * width, width],
    in_proj_bias: [3 * width],
    "out_proj.weight": [width, width],
    "out_proj.bias": [width],
  };
  const dropout = random.pick([0, 0, 1]);
  const [layer, weights] = draft.layer("MultiheadAttention", [width, heads], dtype, shapes, { dropout });
  const batch = random.pick<Shape>([[], [2]]);
  const [query, memory] = [queries, keys].map((places) =>
    draft.leaf("parameter", [places, ...batch, width], dtype),
  ) as [Value, Value];
  const options = { layer, heads, isCausal: draft.chance(0.8), needWeights: draft.chance(0.6) };
  const bound = (4 * width + 1) * width + 1;
  const loss = weighed(draft, draft.op("CrossAttention", [query, memory, ...weights], { bound }, options));
  backward(draft, loss);
  // Its steps grow beyond what float32 can follow.
  return { results: [loss.id], isWithoutSteps: true };
}

/** Between layers all is dropped, or nothing. */
export function recurring(draft: Draft): Theme {
  const { random } = draft;
  const [kind, gates] = random.pick<[string, number]>([
    ["RNN", 1],
    ["GRU", 3],
    ["LSTM", 4],
  ]);
  const [length, width, hidden] = [random.pick([1, 2, 3, 5]), random.pick([1, 2, 3]), random.pick([1, 2, 3])];
  const numLayers = random.pick([1, 2, 2, 3]);
  const options = {
    numLayers,
    bias: draft.chance(0.7),
    bidirectional: draft.chance(0.3),
    batchFirst: draft.chance(0.3),
    ...(numLayers > 1 && { dropout: random.pick([0, 1, 1]) }),
    ...(kind === "RNN" && draft.chance(0.4) && { nonlinearity: "relu" }),
  };
  const directions = options.bidirectional ? ["", "_reverse"] : [""];
  const shapes: Record<string, Shape> = {};
  for (let at = 0; at < numLayers; at++) {
    for (const end of directions) {
      const own = at === 0 ? width : hidden * directions.length;
      shapes[`weight_ih_l${at}${end}`] = [gates * hidden, own];
      shapes[`weight_hh_l${at}${end}`] = [gates * hidden, hidden];
      if (!options.bias) continue;
      shapes[`bias_ih_l${at}${end}`] = [gates * hidden];
      shapes[`bias_hh_l${at}${end}`] = [gates * hidden];
    }
  }
  const dtype = draft.floatDType();
  const [layer, weights] = draft.layer(kind, [width, hidden], dtype, shapes, options);
  const x = draft.leaf("parameter", random.pick<Shape>([[length], [length, 2]]).concat(width), dtype);
  const batch = x.shape.length === 3 ? x.shape[options.batchFirst ? 0 : 1]! : 1;
  const states = kind === "LSTM" ? 2 : 1;
  const lasts = states * numLayers * directions.length * batch * hidden;
  // What was dropped between layers shows in nothing but the states of the first one.
  const facts: Options = { layer, hidden: hidden * directions.length, lasts };
  const loss = weighed(draft, draft.op(kind, [x, ...weights], { bound: 8 }, facts));
  backward(draft, loss);
  return { results: [loss.id], isWithoutSteps: options.nonlinearity === "relu" };
}

/** Growth by pieces that fill a value, and around layers. Backward pads the gradients of pieces, and adds gradients up. */
import { isFloat, sizeOf } from "../numbers";
import type { Draft, Value } from "./draft";
import type { Growth } from "./growth";

/** Scores of larger numbers are all or nothing. */
const MOST_SEEN = 4;
const MOST_KEYS = 64;

export const PIECES: Growth = (draft, x) => {
  const whole = isCut(x) && x.requiresGrad && draft.chance(0.4) ? x : product(draft);
  return joined(draft, cut(draft, whole, 0));
};

/** x + f(norm(x)): gradients flow through the layers and around them. */
export const RESIDUAL: Growth = (draft, x) => {
  const width = x.shape.at(-1) ?? 0;
  if (width < 3 || x.shape.length < 2 || sizeOf(x.shape) === 0 || !x.requiresGrad) return null;
  const [scale, shift] = [0, 1].map(() => draft.leaf("parameter", [width], x.dtype)) as [Value, Value];
  const normal = draft.op("layerNorm", [x, scale, shift], { bound: 4 * Math.sqrt(width) + 4 });
  const weights = { weight: [width, width], bias: [width] };
  const [layer, own] = draft.layer("Linear", [width, width], x.dtype, weights, { bias: true });
  const inner = draft.op("Linear", [normal, ...own], { bound: normal.bound * width + 1 }, { layer });
  return draft.op("add", draft.chance(0.5) ? [x, inner] : [inner, x], { bound: x.bound + inner.bound });
};

/** Of shapes that have pieces of pieces. */
function product(draft: Draft): Value {
  const [rows, width] = [draft.random.pick([4, 6, 8, 9, 12]), draft.random.pick([1, 2, 3, 4])];
  const a = draft.leaf("parameter", [rows, 2], draft.floatDType(), draft.fill("small"));
  const b = draft.leaf(draft.chance(0.5) ? "parameter" : "data", [2, width], a.dtype, draft.fill("small"));
  return draft.op("matmul", [a, b], { bound: 2 });
}

function isCut({ shape, dtype }: Value): boolean {
  return (shape[0] ?? 0) > 1 && sizeOf(shape) > 0 && isFloat(dtype);
}

/** Slices one after the other. Some are cut again, or changed. */
function cut(draft: Draft, x: Value, depth: number): Value[] {
  const rows = x.shape[0]!;
  const count = draft.random.pick(
    [3, 3, 2, 4]
      .filter((n) => rows % n === 0)
      .concat(rows <= 5 ? [] : [2])
      .concat(1),
  );
  const size = count === 1 ? 1 + draft.random.below(rows - 1) : Math.ceil(rows / count);
  const begins = Array.from({ length: Math.ceil(rows / size) }, (_, i) => i * size).slice(0, 4);
  return begins.map((start, i) => {
    const end = begins[i + 1] ?? rows;
    const piece = draft.op("slice", [x], { certain: x.certain, low: x.low }, { start, end, axis: 0 });
    if (depth < 2 && isCut(piece) && draft.chance(0.45)) return joined(draft, cut(draft, piece, depth + 1));
    return draft.chance(0.2) ? draft.op("tanh", [piece], { bound: 1, low: -1 }) : piece;
  });
}

/** One value of all pieces, in which some have the same gradient. */
function joined(draft: Draft, pieces: readonly Value[]): Value {
  const [first, second, third, ...more] = pieces as [Value, ...Value[]];
  const isEven = pieces.every(({ shape }) => String(shape) === String(first.shape));
  const isSeen = isEven && more.length === 0 && first.shape.length > 1 && first.shape.at(-2)! <= MOST_KEYS;
  if (isSeen && third && draft.chance(0.7)) return attended(draft, [first, second!, third]);
  const list = isEven ? pieces : pieces.map((x) => draft.op("mean", [x], {}, { axis: 0, keepDim: true }));
  return list.slice(1).reduce((sum, x) => {
    const op = draft.random.pick(["add", "add", "sub", "mul"]);
    const bound = op === "mul" ? sum.bound * x.bound : sum.bound + x.bound;
    return draft.op(op, [sum, x], { bound });
  }, list[0]!);
}

/** Attention of query, key and value. At times each is cut into heads. */
function attended(draft: Draft, inputs: readonly Value[]): Value {
  const isShort = inputs.some(({ dtype }) => dtype === "f16" || dtype === "bf16");
  const tame = inputs.map((x) => (x.bound > MOST_SEEN || isShort ? draft.op("tanh", [x], { bound: 1, low: -1 }) : x));
  if (isShort) return tame.slice(1).reduce((sum, x) => draft.op("mul", [sum, x], { bound: 1 }), tame[0]!);
  const { shape } = tame[0]!;
  const [length, width] = shape.slice(-2) as [number, number];
  const options = { isCausal: draft.chance(0.5) };
  const bound = Math.max(...tame.map((x) => x.bound));
  if (width % 2 > 0 || draft.chance(0.4)) return draft.op("attention", tame, { bound }, options);
  const batch = sizeOf(shape.slice(0, -2));
  const heads = tame.map((x) => {
    const apart = draft.op("reshape", [x], {}, { shape: [batch, length, 2, width / 2] });
    return draft.op("permute", [apart], {}, { axes: [0, 2, 1, 3] });
  });
  const seen = draft.op("attention", heads, { bound }, options);
  return draft.op("reshape", [draft.op("permute", [seen], {}, { axes: [0, 2, 1, 3] })], {}, { shape });
}

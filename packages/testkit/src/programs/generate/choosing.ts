/** Growth by comparing, choosing and measuring. */
import { sizeOf } from "../numbers";
import { broadcast } from "../op-kind";
import type { Shape } from "../program";
import type { Draft, Value } from "./draft";
import { type Growth, MOST } from "./growth";

/** A condition that no rounding can turn. */
export function condition(draft: Draft, shape: Shape): Value | null {
  const certain = draft
    .floats()
    .filter((value) => value.certain && broadcast([value.shape, shape]) !== null)
    .filter((value) => sizeOf(broadcast([value.shape, shape])!) <= MOST);
  if (certain.length === 0) return null;
  const a = draft.random.pick(certain);
  const like = certain.filter((other) => String(other.shape) === String(a.shape));
  return draft.op(
    draft.random.pick(["less", "eq", "ne", "lt", "le", "gt", "ge"]),
    draft.chance(0.5) ? [a, draft.random.pick([0, 0.25, -1])] : [a, draft.random.pick([a, ...like])],
    { certain: true, bound: 1, low: 0 },
  );
}

const axisOf = (draft: Draft, x: Value): number => draft.random.below(x.shape.length);

export const CHOICES: readonly Growth[] = [
  (draft, x) => {
    const chosen = condition(draft, x.shape);
    if (chosen === null) return null;
    if (draft.chance(0.3)) return draft.op("maskedFill", [x, chosen], {}, { value: draft.random.pick([0, -2, 0.5]) });
    return draft.op("where", draft.chance(0.5) ? [chosen, x, draft.random.pick([0, 1.5])] : [chosen, x, x], {});
  },
  (draft, x) => {
    const both = { low: draft.random.pick([-1.1, 0.3]), high: draft.random.pick([0.7, 1.9]) };
    const { low, high } = both;
    if (draft.chance(0.6)) return draft.op("clamp", [x], { bound: 2, low, certain: x.certain }, both);
    return draft.chance(0.5)
      ? draft.op("clamp", [x], { low, bound: Math.max(x.bound, 1) }, { low })
      : draft.op("clamp", [x], { bound: Math.max(x.bound, 2) }, { high });
  },
  (draft, x) => {
    if (x.shape.length === 0 || draft.isEmpty(x)) return null;
    const options = { axis: axisOf(draft, x), keepDim: draft.chance(0.5) };
    return draft.op("min", [x], { certain: x.certain }, options);
  },
  (draft, x) => {
    if (x.shape.length === 0 || draft.isEmpty(x)) return null;
    const options = { axis: axisOf(draft, x), keepDim: draft.chance(0.5) };
    return draft.op("var", [x], { low: 0, bound: x.bound ** 2 }, options);
  },
  (draft, x) => {
    if (x.shape.length === 0 || x.low < 0.25) return null;
    const axis = axisOf(draft, x);
    return draft.op(
      "norm",
      [x],
      { low: 0, bound: x.bound * Math.max(x.shape[axis]!, 1) },
      { axis, keepDim: draft.chance(0.5) },
    );
  },
  (draft, x) => {
    if (x.shape.length === 0 || !x.certain) return null;
    const axis = axisOf(draft, x);
    const k = Math.min(x.shape[axis]!, 1 + draft.random.below(3));
    return draft.op("topk", [x], { certain: true }, { k, axis, largest: draft.chance(0.5) });
  },
  (draft, x) => {
    if (x.shape.length === 0) return null;
    const axis = axisOf(draft, x);
    const below = x.shape[axis]!;
    if (below === 0 || below > 256) return null;
    const shape = x.shape.with(axis, draft.random.pick([1, 2, 3]));
    const indices = draft.leaf("data", shape, "i32", {
      ...draft.fill("whole"),
      below,
    });
    return draft.op("gatherAlong", [x, indices], { certain: x.certain, low: x.low }, { axis });
  },
  (draft, x) => {
    const classes = x.shape.at(-1) ?? 0;
    if (classes < 1 || classes > 256) return null;
    const places = draft.leaf("data", x.shape.slice(0, -1), "i32", {
      ...draft.fill("whole"),
      below: classes,
    });
    const hot = draft.op("oneHot", [places], { bound: 1, low: 0, certain: true }, { classes });
    return draft.op("mul", [x, hot], {});
  },
];

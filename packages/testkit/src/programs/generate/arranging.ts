/** Growth by giving elements other places. */
import { sizeOf } from "../numbers";
import type { Draft, Value } from "./draft";
import { type Growth, MOST } from "./growth";

const kept = ({ certain, low }: Value): Partial<Value> => ({ certain, low });
const axisOf = (draft: Draft, x: Value): number => draft.random.below(x.shape.length);

export const ARRANGEMENTS: readonly Growth[] = [
  (draft, x) => draft.op("squeeze", [x], kept(x)),
  (draft, x) => draft.op("unsqueeze", [x], kept(x), { axis: draft.random.below(x.shape.length + 1) }),
  (draft, x) => {
    const stretched = x.shape.map((extent) => (extent === 1 && draft.chance(0.6) ? 3 : extent));
    const shape = draft.chance(0.5) ? [2, ...stretched] : stretched;
    return sizeOf(shape) > MOST ? null : draft.op("expand", [x], kept(x), { shape });
  },
  (draft, x) => {
    const like = draft.floats().filter((y) => y.dtype === x.dtype && String(y.shape) === String(x.shape));
    const list = [x, draft.random.pick([x, ...like])];
    if (sizeOf(x.shape) * 2 > MOST) return null;
    const bound = Math.max(...list.map((value) => value.bound));
    const certain = list.every((value) => value.certain);
    return draft.op("stack", list, { bound, certain }, { axis: draft.random.below(x.shape.length + 1) });
  },
  (draft, x) => {
    if (x.shape.length === 0 || draft.isEmpty(x)) return null;
    const axis = axisOf(draft, x);
    const size = 1 + draft.random.below(x.shape[axis]!);
    return draft.op("split", [x], kept(x), { size, axis, piece: draft.random.below(Math.ceil(x.shape[axis]! / size)) });
  },
  (draft, x) => {
    if (x.shape.length === 0 || sizeOf(x.shape) * 9 > MOST) return null;
    const cut = x.shape.at(-1)! > 1 && draft.chance(0.3) ? -1 : 1;
    const padding = [draft.random.below(3), cut, ...(x.shape.length > 1 && draft.chance(0.5) ? [1, 0] : [])];
    const value = draft.random.pick([0, 0, 0.5, -1]);
    const low = Math.min(x.low, value);
    return draft.op("pad", [x], { low, certain: x.certain, bound: Math.max(x.bound, 1) }, { padding, value });
  },
  (draft, x) => {
    if (x.shape.length < 2) return null;
    const facts = { certain: x.certain, low: Math.min(x.low, 0) };
    return draft.op(draft.random.pick(["tril", "triu"]), [x], facts, { diagonal: draft.random.pick([0, 1, -1]) });
  },
  (draft, x) => {
    if (x.shape.length === 0) return null;
    const axis = axisOf(draft, x);
    return draft.op("cumsum", [x], { bound: x.bound * Math.max(x.shape[axis]!, 1) }, { axis });
  },
];

/** Ops of any kind one after the other, and their gradients of any order. */
import type { Options } from "../../program";
import { ARRANGEMENTS } from "../arranging";
import { CHOICES } from "../choosing";
import type { Draft, Value } from "../draft";
import { MOVES, OTHERS, tamed, UNARY } from "../forward";
import type { Growth } from "../growth";
import { LAYERS } from "../layers";
import { backward, slope, sumOf, type Theme, weighed } from "./theme";

const NETWORKS: readonly Growth[] = [0, 1, 2, 6, 7, 8].map((i) => LAYERS[i]!);

/** A value made from another by ops of any kind. */
function chained(draft: Draft, start: Value, most: number): Value {
  let last = start;
  for (let i = draft.random.below(most + 1); i > 0; i--) {
    const kinds = draft.random.pick([UNARY, UNARY, OTHERS, MOVES, CHOICES, ARRANGEMENTS, NETWORKS]);
    const next = draft.random.pick(kinds)(draft, tamed(draft, last));
    if (next?.requiresGrad) last = next;
  }
  return last;
}

/** Kinks and choices that no chain has, of which a piece stays differentiable. */
const KINKED: readonly (readonly [op: string, options?: Options])[] = [
  ...["abs", "relu", "leakyRelu", "relu6", "hardtanh", "elu", "square", "softplus"].map((op) => [op] as const),
  ["norm", { p: 1 }],
  ["norm", { p: "Infinity" }],
  ["clamp", { low: -1, high: 1 }],
  ["max", {}],
  ["mean", {}],
];

/** Backward through a gradient, to leaves whose own gradient it mentions. */
export function penalty(draft: Draft): Theme {
  const { random, shape } = draft;
  const x = draft.leaf(draft.chance(0.5) ? "marked" : "parameter", shape, draft.floatDType());
  const [w, b] = [0, 1].map(() => draft.leaf("parameter", shape, x.dtype)) as [Value, Value];
  const inner = draft.op("add", [draft.op("mul", [x, w], { bound: 16 }), b], { bound: 20 });
  const bent = draft.chance(0.7) ? kinked(draft, inner) : inner;
  const end = chained(draft, bent, 2);
  const loss = draft.chance(0.5) ? sumOf(draft, end) : weighed(draft, end);
  const first = slope(draft, loss, random.pick([x, x, w]));
  backward(draft, sumOf(draft, draft.op("mul", [first, first], {})));
  return { results: draft.chance(0.5) ? [loss.id] : [] };
}

function kinked(draft: Draft, x: Value): Value {
  const { random } = draft;
  if (x.shape.length === 4 && x.shape[2]! > 1 && x.shape[3]! > 1 && !draft.isEmpty(x)) {
    return draft.op("maxPool2d", [x], {}, { kernel: 2, stride: random.pick([1, 2]) });
  }
  if (draft.chance(0.15)) {
    const target = draft.leaf("data", x.shape, x.dtype);
    return draft.op(random.pick(["maximum", "minimum"]), [x, target], {});
  }
  if (draft.chance(0.15) && !draft.isEmpty(x)) {
    const op = random.pick(["l1Loss", "smoothL1Loss"]);
    const target = draft.leaf("data", x.shape, x.dtype);
    return draft.op(op, [x, target], { bound: x.bound + 4 }, { call: op });
  }
  if (draft.chance(0.15) && x.shape.length > 0 && !draft.isEmpty(x)) {
    const axis = random.below(x.shape.length);
    if (draft.chance(0.5)) return draft.op("sort", [x], {}, { axis, descending: draft.chance(0.5) });
    return draft.op("topk", [x], {}, { k: 1, axis, largest: draft.chance(0.5) });
  }
  const [op, options] = random.pick(KINKED);
  if (draft.isEmpty(x) && /norm|max|mean/.test(op)) return x;
  return draft.op(op, [x], { bound: x.bound ** 2 + x.bound * 8 }, options);
}

/** Ops of any kind, and their gradients, at times of several losses or twice. */
export function chain(draft: Draft): Theme {
  const start = draft.leaf("parameter", draft.shape, draft.floatDType());
  if (draft.chance(0.5)) draft.leaf("data", draft.shape, draft.floatDType());
  const loss = weighed(draft, chained(draft, draft.op("mul", [start, 1], {}), 4));
  const isTwice = draft.chance(0.3);
  if (isTwice) backward(draft, loss, true);
  backward(draft, loss);
  if (draft.chance(0.2)) {
    draft.statements.push({ do: "gradient", of: start.id, value: draft.random.pick([0.5, null, draft.fill("small")]) });
  }
  return { results: [loss.id] };
}

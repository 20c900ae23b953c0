/** Numbers that are whole, extreme, labels, or of another length. */
import type { DType } from "@opt/core";
import { sizeOf } from "../../numbers";
import type { Options, Shape } from "../../program";
import type { Draft, Value } from "../draft";
import { chain } from "./chains";
import { backward, slope, sumOf, type Theme, weighed } from "./theme";

/** Ops that choose and arrange, on integers and booleans. */
export function whole(draft: Draft): Theme {
  const { random } = draft;
  const shape = draft.shape.length === 0 ? [3] : draft.shape;
  const dtype = random.pick<DType>(["i32", "i32", "u8", "bool"]);
  const x = draft.leaf("data", shape, dtype, { ...draft.fill("whole"), below: dtype === "bool" ? 2 : 200 });
  const axis = random.below(shape.length);
  const indices = () => draft.leaf("data", shape, "i32", { ...draft.fill("whole"), below: Math.min(...shape) });
  const ops: [string, readonly Value[], Options][] = [
    ["flip", [x], { axis }],
    ["roll", [x], { by: random.pick([1, -2]), axis }],
    ["concat", [x, x], { axis }],
    ["stack", [x, x], { axis }],
    ["permute", [x], { axes: shape.map((_, i) => i).reverse() }],
    ["slice", [x], { start: 1, end: 3, axis }],
    ["pad", [x], { padding: [1, 0], value: 1 }],
  ];
  if (!draft.isEmpty(x)) {
    ops.push(["gather", [x, indices()], {}], ["gather", [x, indices()], {}], ["gatherAlong", [x, indices()], { axis }]);
    if (dtype !== "bool") {
      ops.push(["sort", [x], { axis, descending: draft.chance(0.5) }], ["max", [x], { axis }], ["sum", [x], { axis }]);
      ops.push(["argmax", [x], { axis }], ["topk", [x], { k: 1, axis, largest: draft.chance(0.5) }]);
    }
  }
  const [op, operands, options] = random.pick(ops);
  return { results: [draft.op(op, operands, { certain: true }, options).id] };
}

/** Scans and reductions of numbers whose products leave the dtype on the way. */
export function scanning(draft: Draft): Theme {
  const { random } = draft;
  const shape = random.pick<Shape>([[4], [7], [3, 5], [5, 3], [2, 3, 4], [1], [40], [0]]);
  const axis = random.below(shape.length);
  const isExtreme = draft.chance(0.6);
  const dtype = isExtreme && draft.chance(0.3) ? "bf16" : draft.floatDType();
  const x = draft.leaf("parameter", shape, dtype, draft.fill(isExtreme ? "extreme" : random.pick(["ties", "small"])));
  const ops = isExtreme ? ["cumprod"] : ["cumprod", "cumsum", "logcumsumexp", "prod", "logsumexp"];
  const op = random.pick(sizeOf(shape) === 0 ? ["cumprod", "cumsum"] : ops);
  const result = draft.op(
    op,
    [x],
    { bound: 4 },
    /prod|logsumexp/.test(op) && op !== "cumprod" ? { axis, keepDim: false } : { axis },
  );
  if (!isExtreme) backward(draft, weighed(draft, result));
  return { results: [result.id] };
}

/** Other lengths by interpolation. */
export function resizing(draft: Draft): Theme {
  const { random } = draft;
  const x = draft.leaf(
    "parameter",
    [1 + random.below(2), 1 + random.below(2), 1 + random.below(6)],
    draft.floatDType(),
  );
  const scaleFactor = random.pick([1.25, 1.1, 1.5, 2, 0.75, 0.5, 1, 3]);
  if (Math.floor(x.shape[2]! * scaleFactor) < 1) return chain(draft);
  const result = draft.op("interpolate", [x], {}, { call: "interpolate", scaleFactor });
  backward(draft, weighed(draft, result));
  return { results: [result.id] };
}

/** Losses of labels of which some, or all, are ignored. */
export function labelling(draft: Draft): Theme {
  const { random } = draft;
  const [rows, classes] = [random.pick([1, 2, 4]), random.pick([2, 3, 5])];
  const logits = draft.leaf("parameter", [rows, classes], draft.floatDType());
  const labels = draft.leaf("data", [rows], "i32", { ...draft.fill("labels"), below: classes });
  const scaled = draft.op("mul", [logits, 0.5], {});
  const loss = draft.op("meanCrossEntropy", [scaled, labels], { bound: 8 }, { call: "crossEntropy" });
  if (draft.chance(0.5)) {
    const first = slope(draft, loss, logits);
    backward(draft, sumOf(draft, draft.op("mul", [first, first], {})));
  } else backward(draft, loss);
  return { results: [loss.id] };
}

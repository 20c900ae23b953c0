/** Extents at their ends: rows longer than a block, no elements, no axes, and batches of other lengths. Ties are among the numbers. */
import { sizeOf } from "../../numbers";
import type { Fill, Options, Shape } from "../../program";
import type { Draft, Value } from "../draft";
import { LAYERS } from "../layers";
import { ROWS } from "../training";
import { backward, type Theme, weighed } from "./theme";

type Call = readonly [op: string, more: readonly Value[], options: Options];

/** Devices work on blocks of at most so many. */
const BLOCK = 2048;

/** Long rows, in which many numbers are equal. */
export function longRows(draft: Draft): Theme {
  const { random } = draft;
  const long = BLOCK + random.pick([1, 2, 55, 500, 2049, 2100]);
  const isLast = draft.chance(0.7);
  const shape = random.pick<Shape>(
    isLast
      ? [[long], [1, long], [2, long]]
      : [
          [long, 1],
          [long, 2],
        ],
  );
  const axis = isLast ? shape.length - 1 : 0;
  if (draft.chance(0.6)) return called(draft, shape, random.pick(ordering(draft, long, axis)), "ties");
  const calls = [...reducing(axis), ...(isLast ? alongRows(draft, shape) : [])];
  return called(draft, shape, random.pick(calls), random.pick(["ties", "grid"]));
}

/** Few numbers, of which many are equal. */
export function ties(draft: Draft): Theme {
  const { random } = draft;
  const shape = random.pick<Shape>([[2], [5], [9], [3, 4], [4, 3], [2, 3, 2]]);
  const axis = random.below(shape.length);
  const most = [["max", [], {}] as const, ["min", [], {}] as const, ["max", [], { axis, keepDim: true }] as const];
  const meeting = draft.leaf("data", shape, draft.dtypes[0]!, draft.fill("ties"));
  const pairs: Call[] = ["maximum", "minimum"].map((op) => [op, [meeting], {}]);
  const all = [...ordering(draft, shape[axis]!, axis), ...most, ...pairs];
  return called(draft, shape, random.pick(all), "ties");
}

const ordering = ({ random }: Draft, extent: number, axis: number): Call[] => [
  ["sort", [], { axis, descending: random.below(2) > 0 }],
  ["argsort", [], { axis, descending: random.below(2) > 0 }],
  ["sort", [], { axis, descending: false }],
  ["topk", [], { axis, k: random.pick([1, 2, extent]), largest: random.below(2) > 0 }],
  ["max", [], { axis }],
  ["min", [], { axis }],
  ["argmax", [], { axis }],
  ["argmin", [], { axis, keepDim: true }],
];

const reducing = (axis: number): Call[] => [
  ...["sum", "mean", "var", "logsumexp"].map((op): Call => [op, [], { axis }]),
  ["sum", [], {}],
  ["norm", [], { p: 1, axis }],
  ["norm", [], { p: "Infinity", axis }],
  ...["cumsum", "logcumsumexp", "softmax", "logSoftmax", "flip"].map((op): Call => [op, [], { axis }]),
];

function alongRows(draft: Draft, shape: Shape): Call[] {
  const width = shape.at(-1)!;
  const dtype = draft.dtypes[0]!;
  if (draft.chance(0.5)) {
    const labels = draft.leaf("data", shape.slice(0, -1), "i32", { ...draft.fill("whole"), below: width });
    return [["crossEntropy", [labels], {}]];
  }
  const weights = [0, 1].map(() => draft.leaf("parameter", [width], dtype));
  return [["layerNorm", weights, {}]];
}

/** An op of one leaf, and its gradient where it has one. */
function called(draft: Draft, shape: Shape, [op, more, options]: Call, kind: Fill["kind"]): Theme {
  const x = draft.leaf("parameter", shape, draft.dtypes[0]!, draft.fill(kind));
  const result = draft.op(op, [x, ...more], { bound: 64, certain: true }, options);
  // Steps make nearly equal numbers of equal ones, whose order is rounding's.
  const isWithoutSteps = /^(sort|argsort|topk|max|min|argmax|argmin|maximum|minimum|norm)$/.test(op);
  if (!result.requiresGrad || /^arg/.test(op)) return { results: [result.id], isWithoutSteps };
  const loss = weighed(draft, result);
  backward(draft, loss);
  return { results: [loss.id, result.id], isWithoutSteps };
}

/** Tensors without elements, without axes, or of one element. */
export function bare(draft: Draft): Theme {
  const { random } = draft;
  const shape = random.pick<Shape>([[], [], [0], [0, 3], [3, 0], [2, 0, 2], [1], [1, 1]]);
  const isEmpty = sizeOf(shape) === 0;
  const dtype = draft.dtypes[0]!;
  const rank = shape.length;
  const calls: Call[] = [
    ["sum", [], {}],
    ["relu", [], {}],
    ["softplus", [], {}],
    ["clone", [], {}],
    ["mul", [draft.leaf("parameter", random.pick<Shape>([[], shape]), dtype)], {}],
    ["maximum", [draft.leaf("data", shape, dtype)], {}],
    ["clamp", [], { low: -1, high: 1 }],
    ["reshape", [], { shape: isEmpty ? [0, 2] : [1] }],
    ["unsqueeze", [], { axis: 0 }],
    ["stack", [draft.leaf("parameter", shape, dtype)], { axis: rank }],
    ["mean", [], {}],
  ];
  if (!isEmpty) calls.push(...["max", "min"].map((op): Call => [op, [], {}]), ["norm", [], { p: 1 }]);
  if (rank > 0) {
    const axis = random.below(rank);
    const more = draft.leaf("parameter", shape.with(axis, 2), dtype);
    calls.push(["concat", [more], { axis }], ["cumsum", [], { axis }], ["sum", [], { axis, keepDim: true }]);
    calls.push(["softmax", [], { axis }], ["logSoftmax", [], { axis }], ["flip", [], { axis }]);
    calls.push(["sort", [], { axis, descending: true }], ["prod", [], { axis }]);
    if (shape[axis]! > 0) calls.push(["max", [], { axis }], ["topk", [], { axis, k: 1, largest: true }]);
    const width = shape.at(-1)!;
    const indices = draft.leaf("data", [0], "i32", { ...draft.fill("whole"), below: 1 });
    calls.push(["gather", [indices], {}], ["matmul", [draft.leaf("parameter", [width, 2], dtype)], {}]);
    if (width > 0) calls.push(["layerNorm", [draft.leaf("parameter", [width], dtype)], {}]);
  }
  return called(draft, shape, random.pick(calls), random.pick(["grid", "ties"]));
}

/** A mean over rows, of which some calls have more or fewer, or none that another call had. */
export function batching(draft: Draft): Theme {
  const { random } = draft;
  const x = draft.leaf("data", [ROWS, random.pick([1, 3])], draft.floatDType());
  draft.batches.add(x.id);
  const linear = LAYERS[0]!(draft, x)!;
  const bent = draft.chance(0.5) ? draft.op("tanh", [linear], { bound: 1, low: -1 }) : linear;
  const classes = bent.shape[1]!;
  let loss: Value;
  if (classes > 1 && draft.chance(0.5)) {
    const labels = draft.leaf("data", [ROWS], "i32", { ...draft.fill("labels"), below: classes });
    draft.batches.add(labels.id);
    loss = draft.op("meanCrossEntropy", [bent, labels], { bound: 8 }, { call: "crossEntropy" });
  } else {
    const rows = draft.op(random.pick(["mean", "sum"]), [bent], {}, { axis: 0, keepDim: false });
    loss = weighed(draft, rows);
  }
  backward(draft, loss);
  return { results: [loss.id] };
}

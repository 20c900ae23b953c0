/** What small programs are about: each theme is a place where features meet. */
import type { DType } from "@opt/core";
import { interpretOp } from "../interpret/interpret";
import { sizeOf } from "../numbers";
import type { Id, IndexItem, Options, Shape, Statement } from "../program";
import { ARRANGEMENTS } from "./arranging";
import { CHOICES } from "./choosing";
import type { Draft, Value } from "./draft";
import { MOVES, OTHERS, tamed, UNARY } from "./forward";
import type { Growth } from "./growth";
import { LAYERS } from "./layers";

interface Theme {
  readonly results?: readonly Id[];
  /** Done once before the first round. */
  readonly prelude?: readonly Statement[];
  /** Done before one of the later rounds. */
  readonly between?: readonly Statement[];
  readonly isWithoutSteps?: boolean;
  /** The last statement is rejected. */
  readonly isOver?: boolean;
}

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

function sumOf(draft: Draft, x: Value): Value {
  return draft.op("sum", [x], { bound: x.bound * Math.max(sizeOf(x.shape), 1) });
}

/** A loss whose elements weigh differently, so that none can hide. */
function weighed(draft: Draft, x: Value): Value {
  const weights = draft.leaf("data", x.shape, x.dtype, draft.fill("grid"));
  return sumOf(draft, draft.op("mul", [x, weights], { bound: 4 * x.bound }));
}

function backward(draft: Draft, loss: Value, retain = false): void {
  draft.statements.push({ do: "backward", of: loss.id, gradient: null, ...(retain && { retain }) });
}

/** The gradient of a loss by a value, as a value. */
function slope(draft: Draft, loss: Value, by: Value): Value {
  const id = draft.newId("t");
  draft.statements.push({ do: "grad", id, of: loss.id, by: by.id });
  const value = { ...by, id, root: id, bound: 100, certain: false, requiresGrad: true };
  draft.values.push(value);
  return value;
}

/** Backward through a gradient, to leaves whose own gradient it mentions. */
function penalty(draft: Draft): Theme {
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
function chain(draft: Draft): Theme {
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

/** Shapes near to one: an axis more, or fewer, or another extent. */
function nearly(draft: Draft, shape: Shape): Shape {
  const { random } = draft;
  const at = random.below(shape.length + 1);
  const change = random.below(7);
  if (change === 0) return shape.toSpliced(at, 0, random.pick([1, 1, 2]));
  if (change === 1 && shape.length > 0) return shape.toSpliced(random.below(shape.length), 1);
  if (change === 2 && shape.length > 0) return shape.slice(0, -1);
  if (change === 3 && shape.length > 0) return shape.with(random.below(shape.length), random.pick([0, 1, 2, 3]));
  return shape;
}

const MEETING = [
  "concat",
  "concat",
  "stack",
  "add",
  "where",
  "maximum",
  "matmul",
  "gatherAlong",
  "fma",
  "expand",
  "gather",
];

/** Operands of several ranks: they fit, or the op is rejected before it holds memory. */
function meeting(draft: Draft): Theme {
  const { random, shape } = draft;
  const op = random.pick(MEETING);
  const dtype = draft.floatDType();
  const isMixed = /where|gather/.test(op);
  const count = /where|fma/.test(op) ? 3 : /expand/.test(op) ? 1 : /concat|stack/.test(op) ? 1 + random.below(4) : 2;
  const operands = Array.from({ length: count }, (_, i) => {
    const isIndex = isMixed && (op === "where" ? i === 0 : i === 1);
    const own = i === 0 ? shape : nearly(draft, shape);
    return isIndex
      ? draft.leaf("data", own, op === "where" ? "bool" : "i32", { ...draft.fill("whole"), below: 2 })
      : draft.leaf("parameter", own, dtype);
  });
  const axis = draft.chance(0.4) ? -1 : random.below(2 * shape.length + 2) - shape.length - 1;
  const options: Options = op === "expand" ? { shape: nearly(draft, [2, ...shape]) } : { axis };
  const given = /concat|stack|gatherAlong|expand/.test(op) ? options : {};
  if (interpretOp(op, operands, given) === null) {
    draft.statements.push({ do: "op", id: draft.newId("t"), op, of: operands.map(({ id }) => id), options: given });
    return { isOver: true };
  }
  const settled = "axis" in given && axis < 0 ? { axis: axis + shape.length + (op === "stack" ? 1 : 0) } : given;
  const loss = weighed(draft, draft.op(op, operands, {}, settled));
  backward(draft, loss);
  return { results: [loss.id] };
}

/** Elements overwritten through a part, or by others of the same memory. */
function writing(draft: Draft): Theme {
  const { random } = draft;
  const x = draft.leaf(draft.chance(0.5) ? "parameter" : "data", draft.shape, draft.floatDType());
  if (x.shape.length === 0 || draft.isEmpty(x)) return moving(draft);
  const axis = random.below(x.shape.length);
  const start = random.below(x.shape[axis]!);
  const end = start + 1 + random.below(x.shape[axis]! - start);
  const parts: [string, Options][] = [
    ["slice", { start, end, axis }],
    ["slice", { start, end, axis }],
    ["split", { size: 1, axis, piece: start }],
    ["permute", { axes: x.shape.map((_, i) => i).reverse() }],
    ["reshape", { shape: [sizeOf(x.shape)] }],
    ["unsqueeze", { axis: 0 }],
  ];
  const [op, options] = random.pick(parts);
  draft.mayReject.add("BAD_STATE"); // where a part is a copy
  const from = draft.leaf("data", interpretOp(op, [x], options)!, x.dtype, draft.fill("grid"));
  const body: Statement[] = [{ do: "writePart", of: x.id, op, options, from: from.id }];
  draft.statements.push({ do: "noGrad", body });
  const loss = draft.op("mul", [x, 2], {});
  return { results: [loss.id] };
}

/** What brackets choose: read, or written in a new tensor, in place, or in place on the tape. */
function indexing(draft: Draft): Theme {
  const { random } = draft;
  const shape = draft.shape.length === 0 || sizeOf(draft.shape) === 0 ? [3, 4] : draft.shape;
  const dtype = draft.floatDType();
  const how = random.pick(["at", "indexPut", "assign", "assign", "taped"] as const);
  const x = draft.leaf(how === "assign" && draft.chance(0.5) ? "data" : "parameter", shape, dtype);
  const tensors: Value[] = [];
  const masked = how === "assign" && draft.chance(0.3) ? random.below(shape.length) : -1;
  const index = shape.slice(0, 1 + random.below(shape.length)).map((extent, axis): IndexItem => {
    if (axis === masked) {
      tensors.push(draft.leaf("data", [extent], "bool", { ...draft.fill("whole"), below: 2 }));
      draft.compiles = false;
      return "mask";
    }
    const kind = random.below(5);
    if (kind === 0) return random.below(2 * extent) - extent;
    if (kind === 1) return null;
    if (kind < 4 || masked >= 0) {
      const start = random.below(extent);
      return random.pick([
        [start, start + 1 + random.below(extent)],
        [null, -1],
        [start, null, 2],
        [-1, null],
      ]);
    }
    const positions = random.pick<Shape>([[2], [3], [2, 2]]);
    tensors.push(draft.leaf("data", tensors[0]?.shape ?? positions, "i32", { ...draft.fill("whole"), below: extent }));
    return "tensor";
  });
  if (how === "at") {
    const loss = weighed(draft, draft.op("at", [x, ...tensors], {}, { index }));
    backward(draft, loss);
    return { results: [loss.id] };
  }
  const place = masked >= 0 ? [] : interpretOp("at", [x, ...tensors], { index })!;
  const value = draft.leaf("parameter", draft.chance(0.3) ? [] : place, dtype);
  if (how === "indexPut") {
    const options = { index, accumulate: draft.chance(0.4) };
    const loss = weighed(draft, draft.op("indexPut", [x, value, ...tensors], {}, options));
    backward(draft, loss);
    return { results: [loss.id] };
  }
  const picks = tensors.map(({ id }) => id);
  if (how === "assign") {
    const body: Statement[] = [{ do: "assign", of: x.id, index, tensors: picks, from: value.id }];
    draft.statements.push({ do: "noGrad", body });
    return {};
  }
  const y = draft.op("mul", [x, 2], {});
  draft.statements.push({ do: "assign", of: y.id, index, tensors: picks, from: value.id });
  const loss = weighed(draft, draft.op("tanh", [y], { bound: 1 }));
  backward(draft, loss);
  return { results: [loss.id] };
}

/** The memory of a tensor moved within itself: little, or enough for many threads. */
function moving(draft: Draft): Theme {
  const { random } = draft;
  const size = random.pick([5, 40, 1000, 40_000, 100_001]);
  const x = draft.leaf(draft.chance(0.5) ? "parameter" : "data", [size], random.pick(["f32", "f32", "f64", "bf16"]));
  const distance = random.pick([1, 2, 3, 17, Math.floor(size / 2)]) % size;
  const count = size - distance;
  const [from, to] = draft.chance(0.5) ? [0, distance] : [distance, 0];
  draft.statements.push({ do: "noGrad", body: [{ do: "move", of: x.id, from, to, count }] });
  return {};
}

/** Reads before and after a tensor is overwritten, outside of the tape. */
function overwriting(draft: Draft): Theme {
  const { random, shape } = draft;
  const dtype = draft.floatDType();
  const [w, x] = [draft.leaf("parameter", shape, dtype), draft.leaf("data", shape, dtype)];
  draft.recording = false;
  let read: Value = w;
  const body = draft.inner(() => {
    const steps = 3 + random.below(4);
    const at = random.below(steps);
    for (let i = 0; i < steps; i++) {
      if (i === at) {
        draft.statements.push({ do: "set", to: w.id, from: x.id });
        continue;
      }
      read = draft.op(random.pick(["mul", "add", "sub"]), [read, random.pick([2, 0.5, w, x])], { bound: 4 });
    }
  });
  draft.recording = true;
  draft.statements.push({ do: "noGrad", body });
  return { results: read === w ? [] : [read.id] };
}

/** A network that follows another, frozen one: the targets of reinforcement learning, and teachers. */
function following(draft: Draft): Theme {
  const { random } = draft;
  const [width, out] = [random.pick([1, 2, 3]), random.pick([1, 2])];
  const dtype = draft.floatDType();
  const shapes = { weight: [out, width], bias: [out] };
  const [online, own] = draft.layer("Linear", [width, out], dtype, shapes, { bias: true });
  const [target, others] = draft.layer("Linear", [width, out], dtype, shapes, { bias: true });
  const x = draft.leaf("data", [random.pick([1, 3]), width], dtype);
  const a = draft.op("Linear", [x, ...own], { bound: 4 * width + 1 }, { layer: online });
  const b = draft.op("Linear", [x, ...others], { bound: 4 * width + 1 }, { layer: target });
  const apart = draft.op("sub", [a, b], { bound: 8 * width + 2 });
  const loss = sumOf(draft, draft.op("mul", [apart, apart], {}));
  backward(draft, loss);
  draft.statements.push({ do: "follow", layer: target, other: online });
  return { results: [loss.id], prelude: [{ do: "freezeLayer", layer: target }] };
}

/** An embedding with padding, dense or row-sparse, whose gradient is clipped. */
function padding(draft: Draft): Theme {
  const { random } = draft;
  const [count, width] = [random.pick([2, 3, 5]), random.pick([1, 2, 4])];
  const paddingIdx = random.below(count);
  const dtype = draft.floatDType();
  const options = { sparse: draft.chance(0.7), paddingIdx };
  const [layer, weights] = draft.layer("Embedding", [count, width], dtype, { weight: [count, width] }, options);
  const indices = draft.leaf("data", random.pick<Shape>([[3], [5], [2, 2]]), "i32", {
    ...draft.fill("whole"),
    below: count,
  });
  const rows = draft.op("Embedding", [indices, ...weights], { bound: 1 }, { layer });
  const loss = weighed(draft, rows);
  backward(draft, loss);
  const params = weights.map(({ id }) => id);
  const how = random.pick(["norm", "norm", "each", "value"] as const);
  if (draft.chance(0.8)) draft.statements.push({ do: "clip", how, params, limit: random.pick([0.1, 0.5, 1]) });
  return { results: [loss.id] };
}

/** Ops that choose and arrange, on integers and booleans. */
function whole(draft: Draft): Theme {
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
function scanning(draft: Draft): Theme {
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
function resizing(draft: Draft): Theme {
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
function labelling(draft: Draft): Theme {
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

/** Layers that train and evaluate differently. */
function switching(draft: Draft): Theme {
  const { random } = draft;
  const [rows, channels] = [random.pick([3, 4, 6]), random.pick([1, 2, 3])];
  const x = draft.leaf("parameter", [rows, channels], draft.floatDType());
  const normal = LAYERS[5]!(draft, draft.op("mul", [x, 1], {}))!;
  let last = normal;
  if (draft.chance(0.3)) {
    const [layer] = draft.layer("Dropout", [random.pick([0, 1])], normal.dtype, {});
    last = draft.op("Dropout", [normal], {}, { layer });
  }
  const loss = weighed(draft, last);
  backward(draft, loss);
  return { results: [loss.id] };
}

/** A network whose parts are replaced between calls, and whose properties change. */
function replacing(draft: Draft): Theme {
  const { random } = draft;
  const x = draft.leaf("data", [random.pick([3, 4]), random.pick([1, 3])], draft.floatDType());
  const first = LAYERS[0]!(draft, x)!;
  const normal = draft.chance(0.5) ? LAYERS[5]!(draft, first)! : first;
  const [layer] = draft.layer("Dropout", [random.pick([0, 1])], normal.dtype, {});
  const loss = weighed(draft, draft.op("Dropout", [normal], {}, { layer }));
  backward(draft, loss);
  const changes: Statement[] = draft.layers.map(({ id, kind }) => {
    if (kind === "Dropout") return { do: "property", layer: id, name: "p", value: random.pick([0, 1]) };
    const { trackRunningStats } = draft.layers.find((one) => one.id === id)!.options;
    const isNormal = trackRunningStats && draft.chance(0.5);
    if (isNormal) return { do: "property", layer: id, name: "momentum", value: random.pick([0, 0.5]) };
    return { do: "replace", layer: id, seed: random.below(1 << 20) };
  });
  // An optimizer would go on with the parameters that are gone.
  return { results: [loss.id], between: [random.pick(changes)], isWithoutSteps: true };
}

export const THEMES: readonly ((draft: Draft) => Theme)[] = [
  penalty,
  penalty,
  penalty,
  chain,
  chain,
  meeting,
  meeting,
  writing,
  indexing,
  indexing,
  moving,
  overwriting,
  following,
  padding,
  whole,
  scanning,
  resizing,
  labelling,
  switching,
  replacing,
];

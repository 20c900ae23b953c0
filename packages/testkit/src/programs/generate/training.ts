/** Training steps: losses and their gradients, and what is done with them. */
import { isFloat, sizeOf } from "../numbers";
import { type Body, type Id, innerOf, madeBy, type OptimizerUse, type Program, type Statement } from "../program";
import { type Draft, NO_LIMIT, type Value } from "./draft";
import { grow, tamed } from "./forward";
import { LAYERS } from "./layers";

export type Trainers = Pick<Program, "optimizers" | "averages" | "scaler">;

/** The first extent of data whose extent is another in some rounds. */
export const ROWS = 4;

/** A body: forward and backward, then clipping, steps and cleared gradients. At times the second part is a body of its own. */
export function trainingBodies(draft: Draft, trainers: Trainers): Body[] {
  const outside = draft.values;
  const results: Id[] = [];
  // With a scaler there is no moment between them at which a run could be saved.
  const isSplit = trainers.scaler === null && draft.chance(0.12);
  const first = draft.inner(() => {
    draft.values = [...outside];
    forwardAndBackward(draft, trainers, results);
  });
  let value: Value | null = null;
  const between = draft.inner(() => {
    if (!isSplit && draft.chance(0.15)) value = early(draft);
  });
  const second = draft.inner(() => {
    stepsAndClearing(draft, trainers);
    if (value !== null && !draft.isEmpty(value)) results.push(meanOf(draft, value));
  });
  const isLeaf = ({ id }: Value) => draft.leaves.some((leaf) => leaf.id === id);
  draft.values = [...new Map([...outside, ...draft.values.filter(isLeaf)].map((value) => [value.id, value])).values()];
  if (isSplit) draft.leavesGradients = true;
  return isSplit
    ? [bodyOf(draft, first, results), bodyOf(draft, second, [])]
    : [bodyOf(draft, [...first, ...between, ...second], results)];
}

/** Some of what the statements use comes as an argument. */
export function bodyOf(draft: Draft, statements: readonly Statement[], results: readonly Id[]): Body {
  const all = (list: readonly Statement[]): Statement[] => list.flatMap((one) => [one, ...all(innerOf(one))]);
  const made = new Set(all(statements).map(madeBy));
  const used = new Set(
    JSON.stringify(statements)
      .match(/"[a-z]\d+"/g)
      ?.map((name) => name.slice(1, -1)),
  );
  const ofLayers = new Set(draft.leaves.filter(({ of }) => of !== undefined).map(({ id }) => id));
  const takes = (id: Id): boolean => {
    if (draft.averages.has(id)) return false;
    if (/^[kb]/.test(id) || draft.batches.has(id) || draft.carried.has(id)) return true;
    return draft.chance(/^x/.test(id) ? 0.5 : 0.05);
  };
  const args = [...used].filter((id) => /^[kbxwmt]/.test(id) && !made.has(id) && !ofLayers.has(id));
  const chosen = args.filter(takes);
  const extra = chosen.filter((id) => /^x/.test(id) && draft.chance(0.1));
  return { args: chosen, statements, results: [...new Set([...results, ...extra])] };
}

function forwardAndBackward(draft: Draft, { optimizers, scaler }: Trainers, results: Id[]): void {
  const scaled = scaler !== null;
  if (draft.chance(0.2)) copyInPlace(draft);
  const losses = draft.chance(0.2) ? 2 : 1;
  for (let i = 0; i < losses; i++) {
    if (draft.chance(0.3)) inTidy(draft, () => lossAndGradients(draft, optimizers, scaled), results);
    else {
      const loss = lossAndGradients(draft, optimizers, scaled);
      if (loss !== null && draft.chance(0.7)) results.push(loss.id);
    }
  }
  draft.forget(({ id }) => !draft.leaves.some((leaf) => leaf.id === id));
  draft.taped.clear();
  if (draft.chance(0.12)) carry(draft, results);
}

function stepsAndClearing(draft: Draft, trainers: Trainers): void {
  const { optimizers, averages, scaler } = trainers;
  const scaled = scaler !== null;
  const order = draft.chance(0.8) ? optimizers : [...optimizers].reverse();
  const params = optimizers.flatMap(({ groups }) => groups.flatMap((group) => group.params));
  const steps = draft.inner(() => {
    if (scaled) draft.mayReject.add("BAD_STATE"); // an optimizer without gradients
    // What the factor saved of f16 would be lost: that is rejected.
    const hasF16 = JSON.stringify([draft.leaves, draft.layers]).includes('"f16"');
    if (scaled && draft.chance(0.3) && !hasF16) {
      draft.statements.push({ do: "unscale", optimizer: draft.random.pick(order).id });
      draft.mayReject.add("UNSUPPORTED"); // f16 may still join it
    }
    if (draft.chance(0.25)) clip(draft, params);
    if (draft.chance(0.1)) draft.statements.push({ do: "gradient", of: draft.random.pick(params), value: 0.5 });
    for (const { id, kind } of order) {
      // RAdam rectifies from its sixth step on.
      const count = !scaled && draft.chance(kind === "RAdam" ? 0.5 : 0.05) ? 3 : 1;
      for (let i = 0; i < count; i++) draft.statements.push({ do: "step", optimizer: id, ...(scaled && { scaled }) });
    }
    if (scaled) draft.statements.push({ do: "update" });
    for (const { id } of averages) if (draft.chance(0.9)) draft.statements.push({ do: "average", average: id });
    for (const { id } of order) clear(draft, id);
    for (const { id, kind } of draft.leaves) {
      if (kind === "data" || params.includes(id)) continue;
      if (draft.chance(0.8)) draft.statements.push({ do: "gradient", of: id, value: null });
      else draft.leavesGradients = true;
    }
  });
  // Gradients of several calls add up where only some of them step.
  if (!draft.chance(0.15)) draft.statements.push(...steps);
  else {
    draft.leavesGradients = true;
    draft.statements.push({ do: "when", flag: draft.argument("b").scalar, body: steps });
  }
  if (draft.chance(0.1)) copyInPlace(draft);
}

function clear(draft: Draft, optimizer: Id): void {
  const setToNull = draft.chance(0.8);
  const isCleared = draft.chance(0.85);
  if (isCleared) draft.statements.push({ do: "zeroGrad", optimizer, setToNull });
  if (!isCleared || !setToNull) draft.leavesGradients = true;
}

/** What is computed before the steps, and read after them. */
function early(draft: Draft): Value | null {
  let value: Value | null = null;
  draft.recording = false;
  const body = draft.inner(() => {
    const x = draft.random.pick(draft.floats());
    value = draft.chance(0.6) ? draft.op("mul", [x, 0.5], {}) : grow(draft);
  });
  draft.recording = true;
  if (body.length > 0) draft.statements.push({ do: "noGrad", body });
  return value;
}

function meanOf(draft: Draft, value: Value): Id {
  const sum = draft.op("add", [tamed(draft, value), 1], {});
  return draft.op("mean", [sum], {}).id;
}

/** A state that each call takes and returns. */
function carry(draft: Draft, results: Id[]): void {
  const state = draft.leaf("data", draft.shape, draft.floatDType());
  draft.overwritten(state.root);
  draft.recording = false;
  const body = draft.inner(() => {
    const others = draft.floats().filter(({ shape }) => String(shape) === String(state.shape));
    const half = draft.op("mul", [state, 0.5], { bound: 2 });
    const sum = draft.op("add", [half, draft.random.pick(others)], {});
    const { dtype } = state;
    const next = draft.op("tanh", [sum], { bound: 1, low: -1 });
    const cast = next.dtype === dtype ? next : draft.op("to", [next], {}, { dtype, from: next.dtype });
    draft.carried.set(state.id, cast.id);
    results.push(cast.id);
  });
  draft.recording = true;
  draft.statements.push({ do: "noGrad", body });
  draft.forget(({ id }) => !draft.leaves.some((leaf) => leaf.id === id));
}

/** Something made from rows, of which some calls have fewer: a mean over them. */
function ofRows(draft: Draft): Value {
  const { random } = draft;
  const outside = new Set(draft.values);
  const rows = draft.leaf("data", [ROWS, random.pick([2, 3, 5])], draft.floatDType());
  draft.batches.add(rows.id);
  let x = rows;
  for (let i = 0; i <= random.below(3); i++) {
    const weight = () => draft.ofShape(x.shape.slice(1));
    const next = random.pick<() => Value | null>([
      () => draft.op("mul", [x, tamed(draft, weight())], { bound: 16 * x.bound }),
      () => draft.op("add", [x, tamed(draft, weight())], { bound: x.bound + 200 }),
      () => draft.op(random.pick(["tanh", "sigmoid"]), [x], { bound: 1, low: -1 }),
      () => draft.op("relu", [x], { low: 0 }),
      () => draft.op("softmax", [x], { bound: 1, low: 0 }, { axis: -1 }),
      () => LAYERS[0]!(draft, x),
      () => LAYERS[2]!(draft, x),
      () => LAYERS[4]!(draft, x),
    ])();
    x = tamed(draft, next ?? x);
  }
  let result: Value;
  if (draft.chance(0.4) && x.shape[1]! > 1) {
    const below = x.shape[1]!;
    const labels = draft.leaf("data", [ROWS], "i32", { ...draft.fill("whole"), below });
    draft.batches.add(labels.id);
    const losses = draft.op("crossEntropy", [x, labels], { bound: 2 * x.bound + 6 });
    result = draft.op("mean", [losses], {}, { axis: 0, keepDim: false });
  } else {
    const op = random.pick(["sum", "mean", "mean"]);
    result = draft.op(op, [x], { bound: ROWS * x.bound, low: NO_LIMIT }, { axis: 0, keepDim: false });
  }
  const isWeight = ({ id }: Value) => draft.leaves.some((leaf) => leaf.id === id && leaf.kind === "parameter");
  draft.forget((value) => value !== result && !outside.has(value) && !isWeight(value));
  return result;
}

/** What an argument decides. */
function sometimes(draft: Draft): void {
  const body = draft.inner(() => overwriteAnything(draft));
  if (body.length > 0) draft.statements.push({ do: "when", flag: draft.argument("b").scalar, body });
}

function lossAndGradients(draft: Draft, optimizers: readonly OptimizerUse[], scaled: boolean): Value | null {
  const { random } = draft;
  const params = optimizers.flatMap(({ groups }) => groups.flatMap((group) => group.params));
  const chosen = random.pick(params);
  const start = draft.values.find(({ id }) => id === chosen)!;
  let last = start;
  const steps = 2 + random.below(9);
  const rowsAt = draft.chance(0.25) ? random.below(steps) : -1;
  for (let i = 0; i < steps; i++) {
    if (draft.chance(0.05)) inNoGrad(draft);
    if (draft.chance(0.04)) nested(draft);
    if (draft.chance(0.03)) overwriteAnything(draft);
    if (draft.chance(0.015)) stale(draft);
    if (draft.chance(0.02)) sometimes(draft);
    if (draft.chance(0.03)) drawn(draft);
    if (draft.chance(0.01)) constant(draft);
    const grown = i === rowsAt ? ofRows(draft) : grow(draft);
    if (grown?.requiresGrad) last = grown;
    if (draft.chance(0.04)) disposeOne(draft);
    if (draft.chance(0.01)) keepOne(draft);
  }
  if (!draft.values.includes(last) || !last.requiresGrad)
    last = draft.op("mul", [start, start], { bound: start.bound ** 2 });
  const end = tamed(draft, last);
  if (!scaled && draft.chance(0.15) && sizeOf(end.shape) > 0) {
    const gradient = draft.leaf("data", end.shape, end.dtype, draft.fill("small"));
    draft.statements.push({ do: "backward", of: end.id, gradient: gradient.id });
    forgetTape(draft);
    return null;
  }
  const loss = draft.op(draft.chance(0.5) ? "mean" : "sum", [end], {});
  if (draft.chance(0.02)) {
    draft.statements.push({ do: "step", optimizer: random.pick(optimizers).id });
    draft.mayReject.add("CHANGED");
  }
  draft.statements.push({ do: "backward", of: loss.id, gradient: null, ...(scaled && { scaled }) });
  forgetTape(draft);
  return loss;
}

/** What has been differentiated is not used again. */
export function forgetTape(draft: Draft): void {
  draft.forget(({ id, requiresGrad }) => requiresGrad && !draft.leaves.some((leaf) => leaf.id === id));
}

function inTidy(draft: Draft, body: () => Value | null, results: Id[]): void {
  const outside = [...draft.values];
  let result: Value | null = null;
  const inner = draft.inner(() => {
    result = body();
  });
  const returned = result as Value | null;
  const made = draft.values.filter((value) => draft.leaves.some((leaf) => leaf.id === value.id));
  draft.values = [...new Set([...outside.filter((value) => draft.values.includes(value)), ...made])];
  draft.statements.push({ do: "tidy", body: inner, returns: returned === null ? [] : [returned.id] });
  if (returned !== null) results.push(returned.id);
}

/** A tidy inside of the step: what it returns goes on, the rest of it is gone. */
function nested(draft: Draft): void {
  const outside = [...draft.values];
  let returned: Value[] = [];
  const body = draft.inner(() => {
    for (let i = 0; i <= draft.random.below(3); i++) {
      const grown = grow(draft);
      if (grown !== null) returned = draft.chance(0.2) ? [...returned, grown] : [grown];
      if (draft.chance(0.2)) nested(draft);
    }
    returned = returned.filter((value) => madeHere(draft).includes(value));
  });
  const isLeaf = ({ id }: Value) => draft.leaves.some((leaf) => leaf.id === id);
  draft.forget((value) => !outside.includes(value) && !returned.includes(value) && !isLeaf(value));
  if (body.length > 0) draft.statements.push({ do: "tidy", body, returns: returned.map(({ id }) => id) });
}

function inNoGrad(draft: Draft): void {
  const inner = draft.inner(() => {
    draft.recording = false;
    grow(draft);
    draft.recording = true;
  });
  if (inner.length > 0) draft.statements.push({ do: "noGrad", body: inner });
}

/** In place, at any moment: what backward still needs must be rejected. */
function overwriteAnything(draft: Draft): void {
  const isTaped = ({ id, requiresGrad }: Value) => requiresGrad && !draft.leaves.some((leaf) => leaf.id === id);
  const mayBeTaped = draft.chance(0.1);
  const mayBePart = draft.chance(0.1);
  const target = draft.random.pick(
    draft.floats().filter((value) => (mayBeTaped || !isTaped(value)) && (mayBePart || !value.isPart)),
  );
  if (target.isPart) draft.mayReject.add("BAD_STATE");
  if (isTaped(target)) draft.mayReject.add("BAD_ARGUMENT"); // nobody could say what its gradient is
  const sources = draft.floats().filter(({ shape, id }) => String(shape) === String(target.shape) && id !== target.id);
  if (sources.length === 0) return;
  draft.statements.push({ do: "set", to: target.id, from: draft.random.pick(sources).id });
  draft.overwritten(target.root);
  if (draft.taped.has(target.root)) draft.mayReject.add("CHANGED");
}

/** 16-bit factors are saved as they were widened: only others can be spoiled. */
function stale(draft: Draft): void {
  const pairs = draft.floats().flatMap((of) =>
    draft
      .floats()
      .filter(({ shape, dtype }) => dtype === of.dtype && String(shape) === String(of.shape))
      .filter(
        ({ root, requiresGrad, isPart }) => root !== of.root && !requiresGrad && !draft.taped.has(root) && !isPart,
      )
      .map((by) => [of, by] as const),
  );
  const fitting = pairs.filter(
    ([of]) => of.requiresGrad && of.bound <= 4 && /^f(32|64)$/.test(of.dtype) && !draft.isEmpty(of),
  );
  if (fitting.length === 0) return;
  const [of, by] = draft.random.pick(fitting);
  draft.statements.push({ do: "stale", of: of.id, by: by.id });
  draft.overwritten(by.root);
}

function drawn(draft: Draft): void {
  const [id, dtype] = [draft.newId("t"), draft.floatDType()];
  const normal = draft.chance(0.5);
  draft.statements.push({ do: "random", id, shape: draft.shape, dtype, normal });
  draft.values.push({
    id,
    shape: draft.shape,
    dtype,
    bound: 5,
    low: normal ? -5 : 0,
    requiresGrad: false,
    certain: false,
    root: id,
  });
}

/** Data from the host in the middle of a step: it cannot be compiled. */
function constant(draft: Draft): void {
  const [id, dtype] = [draft.newId("t"), draft.floatDType()];
  draft.statements.push({ do: "constant", id, shape: draft.shape, dtype, fill: draft.fill("grid") });
  draft.values.push({ id, shape: draft.shape, dtype, bound: 4, low: -4, requiresGrad: false, certain: true, root: id });
  draft.compiles = false;
}

/** What the statements of the innermost block have made. */
function madeHere({ statements, values }: Draft): Value[] {
  const made = statements.map(madeBy);
  return values.filter(({ id }) => made.includes(id));
}

/** It cannot be compiled: each call would make another one. */
function keepOne(draft: Draft): void {
  const mine = madeHere(draft);
  if (mine.length === 0) return;
  draft.statements.push({ do: "keep", of: draft.random.pick(mine).id });
  draft.compiles = false;
}

function disposeOne(draft: Draft): void {
  const mine = madeHere(draft);
  if (mine.length === 0) return;
  const one = draft.random.pick(mine);
  draft.statements.push({ do: "dispose", of: one.id });
  draft.forget(({ id }) => id === one.id);
}

function clip(draft: Draft, params: readonly Id[]): void {
  const how = draft.random.pick(["norm", "each", "value"] as const);
  const limit = draft.random.pick([0.1, 0.5, 1]);
  const normType = draft.random.pick([2, 2, 1, 3]);
  draft.statements.push({ do: "clip", how, params, limit, ...(how === "norm" && { normType }) });
}

/** Data overwritten by other data, outside of any tape. */
function copyInPlace(draft: Draft): void {
  const data = draft.values.filter(
    ({ root, requiresGrad, dtype, isPart }) => !requiresGrad && isFloat(dtype) && !draft.taped.has(root) && !isPart,
  );
  if (data.length === 0) return;
  const target = draft.random.pick(data);
  const sources = draft.values.filter(
    ({ shape, dtype, root }) => String(shape) === String(target.shape) && isFloat(dtype) && root !== target.root,
  );
  if (sources.length === 0) return;
  draft.statements.push({ do: "set", to: target.id, from: draft.random.pick(sources).id } satisfies Statement);
  draft.overwritten(target.root);
}

/** Training steps: losses and their gradients, and what is done with them. */
import { isFloat, sizeOf } from "../numbers";
import { type Body, type Id, madeBy, type OptimizerUse, type Program, type Statement } from "../program";
import type { Draft, Value } from "./draft";
import { grow, tamed } from "./forward";

export type Trainers = Pick<Program, "optimizers" | "averages" | "scaler">;

/** A body: forward and backward, then clipping, steps and cleared gradients. */
export function trainingBody(draft: Draft, { optimizers, averages, scaler }: Trainers): Body {
  const outside = draft.values;
  const results: Id[] = [];
  const scaled = scaler !== null;
  const statements = draft.inner(() => {
    draft.values = [...outside];
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
    const order = draft.chance(0.8) ? optimizers : [...optimizers].reverse();
    const params = optimizers.flatMap(({ groups }) => groups.flatMap((group) => group.params));
    if (scaled) draft.mayRefuse.add("BAD_STATE"); // an optimizer without gradients
    // What the factor saved of f16 would be lost: that is refused.
    const hasF16 = JSON.stringify([draft.leaves, draft.layers]).includes('"f16"');
    if (scaled && draft.chance(0.3) && !hasF16) {
      draft.statements.push({ do: "unscale", optimizer: draft.random.pick(order).id });
      draft.mayRefuse.add("UNSUPPORTED"); // f16 may still join it
    }
    if (draft.chance(0.25)) clip(draft, params);
    if (draft.chance(0.1)) draft.statements.push({ do: "gradient", of: draft.random.pick(params), value: 0.5 });
    for (const { id, kind } of order) {
      // RAdam rectifies from its sixth step on.
      const steps = !scaled && draft.chance(kind === "RAdam" ? 0.5 : 0.05) ? 3 : 1;
      for (let i = 0; i < steps; i++) draft.statements.push({ do: "step", optimizer: id, ...(scaled && { scaled }) });
    }
    if (scaled) draft.statements.push({ do: "update" });
    for (const { id } of averages) if (draft.chance(0.9)) draft.statements.push({ do: "average", average: id });
    for (const { id } of order) clear(draft, id);
    for (const { id, kind } of draft.leaves) {
      if (kind === "data" || params.includes(id)) continue;
      if (draft.chance(0.8)) draft.statements.push({ do: "gradient", of: id, value: null });
      else draft.recordable = false;
    }
    if (draft.chance(0.1)) copyInPlace(draft);
  });
  draft.values = outside.concat(draft.values.filter(({ id }) => draft.leaves.some((leaf) => leaf.id === id)));
  draft.values = [...new Map(draft.values.map((value) => [value.id, value])).values()];
  return { statements, results };
}

/** Gradients that a body leaves cannot be met by its replay, unless they were there before. */
function clear(draft: Draft, optimizer: Id): void {
  const setToNull = draft.chance(0.8);
  const isCleared = draft.chance(0.9);
  if (isCleared) draft.statements.push({ do: "zeroGrad", optimizer, setToNull });
  if (!isCleared || !setToNull) draft.recordable = false;
}

function lossAndGradients(draft: Draft, optimizers: readonly OptimizerUse[], scaled: boolean): Value | null {
  const { random } = draft;
  const params = optimizers.flatMap(({ groups }) => groups.flatMap((group) => group.params));
  const chosen = random.pick(params);
  const start = draft.values.find(({ id }) => id === chosen)!;
  let last = start;
  const steps = 2 + random.below(9);
  for (let i = 0; i < steps; i++) {
    if (draft.chance(0.05)) inNoGrad(draft);
    if (draft.chance(0.04)) nested(draft);
    if (draft.chance(0.03)) overwriteAnything(draft);
    if (draft.chance(0.015)) stale(draft);
    if (draft.chance(0.03)) drawn(draft);
    if (draft.chance(0.01)) constant(draft);
    const grown = grow(draft);
    if (grown?.requiresGrad) last = grown;
    if (draft.chance(0.04)) disposeOne(draft);
    if (draft.chance(0.02)) keepOne(draft);
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
    draft.mayRefuse.add("CHANGED");
  }
  draft.statements.push({ do: "backward", of: loss.id, gradient: null, ...(scaled && { scaled }) });
  forgetTape(draft);
  return loss;
}

/** What has been differentiated is not used again. */
function forgetTape(draft: Draft): void {
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

/** In place, at any moment: what backward still needs must be refused. */
function overwriteAnything(draft: Draft): void {
  const isTaped = ({ id, requiresGrad }: Value) => requiresGrad && !draft.leaves.some((leaf) => leaf.id === id);
  const mayBeTaped = draft.chance(0.1);
  const target = draft.random.pick(draft.floats().filter((value) => mayBeTaped || !isTaped(value)));
  if (isTaped(target)) draft.mayRefuse.add("BAD_ARGUMENT"); // nobody could say what its gradient is
  const sources = draft.floats().filter(({ shape, id }) => String(shape) === String(target.shape) && id !== target.id);
  if (sources.length === 0) return;
  draft.statements.push({ do: "set", to: target.id, from: draft.random.pick(sources).id });
  draft.overwritten(target.root);
  if (draft.taped.has(target.root)) draft.mayRefuse.add("CHANGED");
}

/** 16-bit factors are saved as they were widened: only others can be spoiled. */
function stale(draft: Draft): void {
  const pairs = draft.floats().flatMap((of) =>
    draft
      .floats()
      .filter(({ shape, dtype }) => dtype === of.dtype && String(shape) === String(of.shape))
      .filter(({ root, requiresGrad }) => root !== of.root && !requiresGrad && !draft.taped.has(root))
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

/** Data from the host in the middle of a step: it cannot be recorded. */
function constant(draft: Draft): void {
  const [id, dtype] = [draft.newId("t"), draft.floatDType()];
  draft.statements.push({ do: "constant", id, shape: draft.shape, dtype, fill: draft.fill("grid") });
  draft.values.push({ id, shape: draft.shape, dtype, bound: 4, low: -4, requiresGrad: false, certain: true, root: id });
  draft.recordable = false;
}

/** What the statements of the innermost block have made. */
function madeHere({ statements, values }: Draft): Value[] {
  const made = statements.map(madeBy);
  return values.filter(({ id }) => made.includes(id));
}

function keepOne(draft: Draft): void {
  const mine = madeHere(draft);
  if (mine.length > 0) draft.statements.push({ do: "keep", of: draft.random.pick(mine).id });
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
    ({ root, requiresGrad, dtype }) => !requiresGrad && isFloat(dtype) && !draft.taped.has(root),
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

/** A program from a seed. */
import type { DType } from "@opt/core";
import { Random } from "../../numbers/random";
import type {
  Argument,
  AverageUse,
  Body,
  Hook,
  Id,
  Leaf,
  OptimizerUse,
  Options,
  Program,
  Round,
  Shape,
  Statement,
} from "../program";
import { Draft } from "./draft";
import { MOVES, stretchable } from "./forward";
import { changeOf, KINDS, optionsOf } from "./options";
import { ROWS, trainingBodies } from "./training";

const DTYPES: readonly (readonly DType[])[] = [
  ["f32"],
  ["f32"],
  ["f32"],
  ["f64"],
  ["f32", "f64"],
  ["bf16", "f32"],
  ["f16", "f32"],
  ["f32", "bf16", "f16", "f64"],
];

export function generate(seed: number): Program {
  const random = new Random(seed);
  const draft = new Draft(random, random.pick(DTYPES), baseShape(random));
  draft.isSpecial = draft.chance(0.06);
  const parameters = Array.from({ length: 1 + random.below(4) }, () =>
    draft.leaf("parameter", leafShape(draft), draft.floatDType()),
  );
  for (let i = 0; i <= random.below(3); i++) draft.leaf("data", leafShape(draft), draft.floatDType());
  if (draft.chance(0.2)) draft.leaf("marked", leafShape(draft), draft.floatDType());
  const optimizers = optimizersOf(
    draft,
    parameters.map(({ id }) => id),
  );
  if (draft.chance(0.08)) {
    const param = random.pick(parameters);
    const average = draft.leaf("data", param.shape, param.dtype);
    draft.overwritten(average.root);
    draft.averages.set(average.id, param.id);
  }
  const averages = averagesOf(draft, optimizers);
  const scaler = scalerOf(draft);
  const trainers = { optimizers, averages, scaler };
  const prelude = draft.inner(() => {
    viewsAndCopies(draft);
    // The first update copies.
    for (const { id } of averages) if (draft.chance(0.5)) draft.statements.push({ do: "average", average: id });
  });
  draft.inBody = true;
  const bodies = Array.from({ length: draft.chance(0.15) ? 2 : 1 }, () => trainingBodies(draft, trainers)).flat();
  draft.inBody = false;
  if (draft.chance(0.7)) trainOthers(draft, optimizers);
  addHooks(draft, optimizers);
  const rounds: Round[] = [];
  for (let i = random.pick([3, 4, 5, 6, 8, 10]); i > 0; i--) {
    const before = rounds.length === 0 ? [] : draft.inner(() => between(draft, optimizers, averages, rounds.length));
    const body = rounds.length === 0 ? 0 : random.below(bodies.length);
    const args = argumentsOf(draft, bodies[body]!, bodies[rounds.at(-1)?.body ?? -1]);
    rounds.push({ before, body, args, ...(draft.chance(0.08) && { eager: true }) });
  }
  // Nothing can be found in a row-sparse gradient between two launches, and none can be left.
  const isSparse = draft.layers.some(({ options }) => options.sparse);
  const hasHooks = scaler !== null || optimizers.some(({ hooks }) => hooks !== undefined);
  const order = random.pick<Program["resume"]["order"]>([
    ["model", "optimizer", "schedule"],
    ["optimizer", "model", "schedule"],
    ["schedule", "optimizer", "model"],
  ]);
  return {
    seed,
    leaves: draft.leaves,
    layers: draft.layers,
    // Saved as a dense gradient, a row-sparse one would step all rows.
    optimizers: isSparse && draft.leavesGradients ? optimizers.map(withoutLazyMode) : optimizers,
    averages,
    scaler,
    prelude,
    bodies,
    rounds,
    resume: { round: draft.resumeBefore ?? 1 + random.below(rounds.length - 1), order },
    mayReject: [...draft.mayReject],
    compiles: draft.compiles && !(isSparse && (draft.leavesGradients || hasHooks)),
    check: random.pick(["never", "never", "never", "spaced", "spaced", "always"]),
  };
}

function withoutLazyMode(optimizer: OptimizerUse): OptimizerUse {
  const without = ({ lazyMode, ...options }: Options) => options;
  const groups = optimizer.groups.map((group) => ({ ...group, options: without(group.options) }));
  return { ...optimizer, options: without(optimizer.options), groups };
}

/** What a round passes to a body, of which the last round called another or the same. */
function argumentsOf(draft: Draft, { args }: Body, last: Body | undefined): Record<Id, Argument> {
  const { random } = draft;
  const rows = random.pick([ROWS, ROWS, ROWS, ROWS - 1, ROWS - 2]);
  const passed = (id: Id): Argument | undefined => {
    if (id.startsWith("k")) return random.pick([0.5, 0.5, 0.5, 2, -1.25]);
    if (id.startsWith("b")) return draft.chance(0.7);
    const state = draft.carried.get(id);
    if (state !== undefined && last?.results.includes(state) && draft.chance(0.9)) return { result: state };
    const leaf = draft.leaves.find((one) => one.id === id && one.kind === "data");
    const isOfRows = draft.batches.has(id);
    if (leaf === undefined || draft.disposed.has(id) || (!isOfRows && draft.chance(0.35))) return undefined;
    const fill = { ...leaf.fill, seed: random.below(1 << 20) };
    return { fill, ...(isOfRows && { rows }), ...(draft.chance(0.15) && { inside: true }) };
  };
  const given = args.map((id) => [id, passed(id)] as const);
  const all = Object.fromEntries(given.filter((pair): pair is [Id, Argument] => pair[1] !== undefined));
  const [id, as] = draft.chance(0.2) ? alike(draft, args) : [];
  if (id === undefined || as === undefined) return all;
  draft.mayReject.add("CHANGED"); // one may be overwritten while the other is on a tape
  return { ...all, [id]: { as } };
}

/** An argument for which other data can be passed, that of another argument or what the body finds by itself. */
function alike({ leaves, random, batches, carried, disposed }: Draft, args: readonly Id[]): [Id, Id] | [] {
  const isFree = ({ id, kind, of }: Leaf) =>
    kind === "data" && of === undefined && !batches.has(id) && !carried.has(id);
  const data = leaves.filter((leaf) => isFree(leaf) && !disposed.has(leaf.id));
  const key = ({ shape, dtype, fill }: Leaf) => `${shape} ${dtype} ${fill.kind === "whole"} ${fill.below}`;
  const given = data.filter(({ id }) => args.includes(id));
  const pairs = given.flatMap((a, i) =>
    [...given.slice(0, i), ...data.filter((b) => !given.includes(b))].map((b) => [a, b]),
  );
  const fitting = pairs.filter(([a, b]) => key(a!) === key(b!));
  return fitting.length === 0 ? [] : (random.pick(fitting).map(({ id }) => id) as [Id, Id]);
}

function baseShape(random: Random): Shape {
  const rank = random.pick([1, 2, 2, 2, 3, 3, 4]);
  const extents = rank === 4 ? [1, 2, 3, 4] : [1, 2, 3, 4, 5, 7, 8, 17];
  if (random.uniform() < 0.004) return random.pick([[70_000], [300, 257], [65_537, 1]]);
  return Array.from({ length: rank }, () => (random.uniform() < 0.01 ? 0 : random.pick(extents)));
}

function leafShape(draft: Draft): Shape {
  return draft.chance(0.5) ? draft.shape : stretchable(draft, draft.shape);
}

function optimizersOf(draft: Draft, params: readonly Id[]): OptimizerUse[] {
  const { random } = draft;
  const cut = params.length > 1 && draft.chance(0.25) ? 1 + random.below(params.length - 1) : params.length;
  return [params.slice(0, cut), params.slice(cut)]
    .filter((list) => list.length > 0)
    .map((list, i) => {
      const kind = list.every((id) => isMatrix(draft, id)) && draft.chance(0.3) ? "Muon" : random.pick(KINDS);
      const at = list.length > 1 && draft.chance(0.4) ? 1 : list.length;
      const groups = [list.slice(0, at), list.slice(at)]
        .filter((part) => part.length > 0)
        .map((part, g) => ({ params: part, options: g > 0 ? optionsOf(draft, kind, 0.3) : {} }));
      return { id: `o${i}`, kind, options: optionsOf(draft, kind, 0.4), groups, schedule: scheduleOf(draft) };
    });
}

/** All that Muon trains. */
function isMatrix({ leaves }: Draft, param: Id): boolean {
  return leaves.find(({ id }) => id === param)!.shape.length === 2;
}

/** Parameters that came up while the bodies were drafted join the last optimizer, if it trains their like. */
function trainOthers(draft: Draft, optimizers: OptimizerUse[]): void {
  const trained = optimizers.flatMap(({ groups }) => groups.flatMap(({ params }) => params));
  const last = optimizers.pop()!;
  const others = draft.leaves
    .filter(({ id, kind }) => kind === "parameter" && !trained.includes(id))
    .map(({ id }) => id)
    .filter((id) => last.kind !== "Muon" || isMatrix(draft, id));
  const [first, ...groups] = last.groups;
  optimizers.push({ ...last, groups: [{ ...first!, params: [...first!.params, ...others] }, ...groups] });
}

function averagesOf(draft: Draft, optimizers: readonly OptimizerUse[]): AverageUse[] {
  if (!draft.chance(0.15)) return [];
  const params = optimizers.flatMap(({ groups }) => groups.flatMap((group) => group.params));
  const chosen = draft.chance(0.5) ? params : [draft.random.pick(params)];
  return [{ id: draft.newId("e"), params: chosen, options: { decay: draft.random.pick([0.999, 0.75, 0.25]) } }];
}

function scalerOf(draft: Draft): Options | null {
  if (!draft.chance(0.12)) return null;
  const { random } = draft;
  return { initScale: random.pick([2 ** 16, 2 ** 10, 3]), growthInterval: random.pick([1, 2, 2000]) };
}

function scheduleOf(draft: Draft): OptimizerUse["schedule"] {
  if (draft.chance(0.6)) return null;
  return draft.random.pick([
    { kind: "StepLR", options: { stepSize: 2, gamma: 0.5 } },
    { kind: "ExponentialLR", options: { gamma: 0.9 } },
    { kind: "CosineAnnealingLR", options: { tMax: 4 } },
    { kind: "LinearLR", options: { totalIters: 3 } },
    { kind: "OneCycleLR", options: { maxLr: 0.1, totalSteps: 20 } },
  ]);
}

/** What training scripts do between steps. */
function between(
  draft: Draft,
  optimizers: readonly OptimizerUse[],
  averages: readonly AverageUse[],
  round: number,
): void {
  const { random } = draft;
  const parameters = draft.leaves.filter(({ kind }) => kind === "parameter").length;
  const say = (statement: Statement) => draft.statements.push(statement);
  for (const leaf of draft.leaves) {
    if (draft.chance(0.0004)) {
      say({ do: "dispose", of: leaf.id });
      draft.mayReject.add("DISPOSED");
      draft.disposed.add(leaf.id);
    }
    if (draft.disposed.has(leaf.id)) continue;
    if (leaf.kind === "data" && draft.chance(0.5))
      say({ do: "set", to: leaf.id, from: { ...leaf.fill, seed: random.below(1 << 20) } });
    if (leaf.kind !== "parameter") continue;
    if (draft.chance(0.04)) say({ do: "set", to: leaf.id, from: draft.fill("grid") });
    if (draft.chance(0.03)) {
      const how = random.below(3);
      if (how < 2) say({ do: "gradient", of: leaf.id, value: how === 0 ? draft.fill("small") : null });
      else lateGradient(draft, leaf.id);
    }
    const isFrozen = draft.frozen.has(leaf.id);
    if (draft.chance(isFrozen ? 0.6 : parameters > 2 ? 0.005 : 0)) {
      const frozen = !isFrozen;
      say({ do: "freeze", of: leaf.id, frozen });
      draft.frozen[frozen ? "add" : "delete"](leaf.id);
      draft.mayReject.add("NO_GRADIENT");
    }
  }
  if (draft.layers.some(({ kind }) => /Dropout|BatchNorm/.test(kind)) && draft.chance(0.3)) {
    say({ do: "train", training: draft.chance(0.4) });
  }
  for (const { id, params } of averages) {
    // What is disposed has no place for its average.
    const isWhole = params.every((param) => !draft.disposed.has(param));
    if (isWhole && draft.chance(0.15)) say({ do: "averaged", average: id });
  }
  for (const { id, kind, schedule, groups } of optimizers) {
    if (schedule !== null && draft.chance(0.8)) say({ do: "schedule", optimizer: id });
    const option = (name: string, value: unknown) =>
      say({ do: "option", optimizer: id, group: random.below(groups.length), name, value });
    if (draft.chance(0.1)) option("lr", random.pick([0.05, 0.002]));
    if (kind !== "SGD" && kind !== "Muon" && draft.chance(0.05)) option("eps", 1e-4);
    if (draft.chance(0.07)) {
      const [name, value] = changeOf(draft, kind);
      option(name, value);
    }
    if (draft.chance(0.05)) {
      if (draft.saved.has(id)) say({ do: "load", optimizer: id });
      else {
        say({ do: "save", optimizer: id });
        draft.saved.add(id);
        draft.resumeBefore ??= round; // a run has not what another saved
      }
    }
    // These must know every group.
    if (draft.chance(0.1) && !/OneCycleLR|CosineAnnealingLR/.test(schedule?.kind ?? ""))
      addGroup(draft, optimizers, id, kind);
    if (draft.chance(0.01)) say({ do: "reset", optimizer: id });
  }
}

/** A parameter that nothing trains yet joins an optimizer. */
function addGroup(draft: Draft, optimizers: readonly OptimizerUse[], optimizer: Id, optimizerKind: string): void {
  if (draft.saved.has(optimizer)) return; // what was saved has no such group
  const trained = optimizers.flatMap(({ groups }) => groups.flatMap(({ params }) => params));
  const free = draft.leaves.filter(
    ({ id, kind }) =>
      kind === "parameter" &&
      ![...trained, ...draft.joined, ...draft.disposed].includes(id) &&
      (optimizerKind !== "Muon" || isMatrix(draft, id)),
  );
  if (free.length === 0) return;
  const { id } = draft.random.pick(free);
  draft.joined.add(id);
  const options = draft.chance(0.5) ? { lr: 0.02 } : {};
  draft.statements.push({ do: "addGroup", optimizer, params: [id], options });
}

/** Averages, clipping and scaling that an optimizer calls at each step. */
function addHooks(draft: Draft, optimizers: OptimizerUse[]): void {
  for (const [i, optimizer] of optimizers.entries()) {
    const params = optimizer.groups.flatMap((group) => group.params);
    const averaged = [...draft.averages].find(([, of]) => params.includes(of));
    if (averaged !== undefined) optimizers[i] = { ...optimizer, hooks: [averaging(draft, ...averaged)] };
    if (averaged !== undefined || draft.chance(0.87)) continue;
    const chosen = draft.random.pick(params);
    const param = draft.leaves.find(({ id }) => id === chosen)!;
    const hook = draft.random.pick<() => Hook>([
      () => ({ event: "beforeStep", body: [{ do: "gradient", of: param.id, value: 0.5 }] }),
      () => ({ event: "beforeStep", body: [{ do: "clip", how: "value", params, limit: 0.5 }] }),
      () => ({ event: "beforeStep", body: [{ do: "clip", how: "norm", params, limit: 0.5 }] }),
    ])();
    if (hook.body[0]!.do === "gradient") draft.compiles = false; // a replay steps by the gradient that was there
    optimizers[i] = { ...optimizer, hooks: [hook] };
  }
}

/** After each step the average of a parameter follows it. */
function averaging(draft: Draft, average: Id, param: Id): Hook {
  const [a, b, c] = [draft.newId("h"), draft.newId("h"), draft.newId("h")];
  const body: Statement[] = [
    { do: "op", id: a, op: "mul", of: [average, 0.75] },
    { do: "op", id: b, op: "mul", of: [param, 0.25] },
    { do: "op", id: c, op: "add", of: [a, b] },
    { do: "set", to: average, from: c },
  ];
  return { event: "afterStep", body: [{ do: "noGrad", body }] };
}

/** Values beside the leaves that every round sees: other views of a parameter's memory, and copies. */
function viewsAndCopies(draft: Draft): void {
  draft.recording = false;
  const made = draft.inner(() => {
    while (draft.chance(0.25)) {
      const x = draft.random.pick(draft.floats());
      draft.random.pick(MOVES)(draft, draft.chance(0.5) ? draft.op("detach", [x], { certain: x.certain }) : x);
    }
  });
  draft.recording = true;
  if (made.length > 0) draft.statements.push({ do: "noGrad", body: made });
}

/** A gradient from outside of the bodies. */
function lateGradient(draft: Draft, id: Id): void {
  const leaf = draft.values.find((value) => value.id === id)!;
  const squared = draft.op("mul", [leaf, leaf], {});
  const loss = draft.op("sum", [squared], {});
  draft.statements.push({ do: "backward", of: loss.id, gradient: null });
  draft.forget((value) => value === squared || value === loss);
}

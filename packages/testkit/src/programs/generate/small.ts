/** A small program from a seed: one or two features that meet, all of which can be interpreted. */
import { Random } from "../../numbers/random";
import type { Body, Hook, Id, Leaf, OptimizerUse, Program, Round, Shape, Statement } from "../program";
import { Draft } from "./draft";
import { THEMES } from "./themes/themes";
import { around, outside } from "./themes/training";
import { bodyOf, forgetTape, ROWS } from "./training";

export function generateSmall(seed: number): Program {
  const random = new Random(seed);
  const dtypes = random.pick([["f32"], ["f32"], ["f64"], ["f32", "f64"]] as const);
  const draft = new Draft(random, dtypes, smallShape(random));
  const prelude: Statement[] = [];
  draft.inBody = true;
  const results: Id[] = [];
  const changes: Statement[] = [];
  const outer: Id[] = [];
  let [isOver, isStepped] = [false, true];
  let stepsWhen: Id | undefined;
  const isAlone = draft.chance(0.04);
  let theme = isAlone ? outside : THEMES[seed % THEMES.length]!;
  const statements = draft.inner(() => {
    for (let left = draft.chance(0.3) && !isAlone ? 2 : 1; left > 0 && !isOver; left--) {
      const made = theme(draft);
      results.push(...(made.results ?? []));
      prelude.push(...(made.prelude ?? []));
      changes.push(...(made.between ?? []));
      outer.push(...(made.outside ?? []));
      isStepped &&= !made.isWithoutSteps;
      stepsWhen ??= made.stepsWhen;
      forgetTape(draft);
      theme = random.pick(THEMES);
      isOver = made.isOver === true;
    }
  });
  const params = paramsOf(draft, prelude);
  const isTrained = params.length > 0 && isStepped && draft.chance(stepsWhen === undefined ? 0.6 : 0.9);
  const optimizers = isTrained ? [optimizerOf(draft, params)] : [];
  let steps = draft.inner(() => {
    for (const { id } of optimizers) {
      draft.statements.push({ do: "step", optimizer: id });
      if (draft.chance(0.8)) draft.statements.push({ do: "zeroGrad", optimizer: id, setToNull: draft.chance(0.8) });
    }
  });
  // No row-sparse gradient is left by a compiled body or seen by its hooks, and no data comes from the host.
  const isCleared = stepsWhen === undefined && steps.some((one) => one.do === "zeroGrad" && one.setToNull);
  const isSeen = optimizers.some(({ hooks }) => hooks !== undefined);
  if (draft.layers.some(({ options }) => options.sparse) && (!isCleared || isSeen)) draft.compiles = false;
  if (statements.some((one) => one.do === "gradient" && typeof one.value === "object")) draft.compiles = false;
  if (stepsWhen !== undefined && isTrained) steps = [{ do: "when", flag: stepsWhen, body: steps }];
  if (isTrained && !isOver && draft.chance(0.2)) {
    const [more, read] = around(draft, params, steps);
    steps = more;
    results.push(read);
  }
  const body = bodyOf(draft, [...statements, ...steps], results);
  return {
    seed,
    leaves: draft.leaves,
    layers: draft.layers,
    optimizers,
    averages: [],
    scaler: statements.some((one) => one.do === "update") ? { initScale: 2 ** 16 } : null,
    prelude,
    bodies: [body],
    rounds: roundsOf(draft, body, changes, outer),
    resume: { round: 1, order: ["model", "optimizer", "schedule"] },
    mayReject: [...draft.mayReject],
    compiles: draft.compiles && outer.length === 0,
    check: random.pick(outer.length > 0 ? ["spaced", "always"] : ["never", "never", "never", "spaced", "always"]),
  };
}

function smallShape(random: Random): Shape {
  const rank = random.pick([0, 1, 1, 2, 2, 2, 3, 4]);
  return Array.from({ length: rank }, () => (random.uniform() < 0.03 ? 0 : random.pick([1, 2, 3, 4, 5])));
}

/** Parameters that are not frozen. */
function paramsOf({ leaves }: Draft, prelude: readonly Statement[]): Id[] {
  const frozen = new Set(prelude.map((one) => (one.do === "freezeLayer" ? one.layer : "")));
  return leaves.filter(({ kind, of }) => kind === "parameter" && !frozen.has(of?.layer ?? "none")).map(({ id }) => id);
}

function optimizerOf(draft: Draft, params: readonly Id[]): OptimizerUse {
  const use = draft.random.pick([
    { kind: "SGD", options: { lr: 0.1 } },
    { kind: "SGD", options: { lr: 0.1, momentum: 0.9, nesterov: true } },
    { kind: "SGD", options: { lr: 0.05, momentum: 0.5, weightDecay: 0.1 } },
    { kind: "Adam", options: { lr: 0.05, eps: 0.1 } },
    { kind: "Adam", options: { lr: 0.05, eps: 0.1, weightDecay: 0.1, betas: [0.5, 0.9] } },
  ]);
  const hooks = draft.chance(0.15) ? { hooks: [hookOf(draft, params)] } : {};
  return { id: "o0", ...use, groups: [{ params, options: {} }], schedule: null, ...hooks };
}

/** Gradients are clipped before each step, or data follows a parameter after it. */
function hookOf(draft: Draft, params: readonly Id[]): Hook {
  if (draft.chance(0.5)) {
    const how = draft.random.pick(["value", "norm"] as const);
    return { event: "beforeStep", body: [{ do: "clip", how, params, limit: 0.5 }] };
  }
  const param = draft.random.pick(params);
  const { shape, dtype } = draft.leaves.find(({ id }) => id === param)!;
  const follower = draft.leaf("data", shape, dtype);
  draft.averages.set(follower.id, param);
  const [half, sum] = [draft.newId("h"), draft.newId("h")];
  const body: Statement[] = [
    { do: "op", id: half, op: "mul", of: [follower.id, 0.5] },
    { do: "op", id: sum, op: "add", of: [half, param] },
    { do: "set", to: follower.id, from: sum },
  ];
  return { event: "afterStep", body: [{ do: "noGrad", body }] };
}

/** Calls with numbers and batches of their own, and what changes between them. */
function roundsOf(draft: Draft, body: Body, changes: readonly Statement[], outer: readonly Id[]): Round[] {
  const { random } = draft;
  const isSwitched = draft.layers.some(({ kind, options }) => /Dropout|BatchNorm/.test(kind) || options.dropout);
  return Array.from({ length: random.pick(outer.length > 0 ? [4, 5] : [3, 4, 4, 5]) }, (_, i): Round => {
    const between = draft.inner(() => {
      if (i === 0) return;
      if (draft.chance(0.5)) draft.statements.push(...changes);
      for (const leaf of draft.leaves) {
        const fill = { ...leaf.fill, seed: random.below(1 << 20) };
        if (leaf.of === undefined && draft.chance(0.1)) draft.statements.push({ do: "set", to: leaf.id, from: fill });
      }
      if (isSwitched && draft.chance(0.5)) draft.statements.push({ do: "train", training: draft.chance(0.4) });
    });
    const rows = random.pick([ROWS, ROWS, 1, 2, ROWS + 3]);
    const given = body.args.flatMap((id): [Id, Round["args"][Id]][] => {
      if (id.startsWith("k")) return [[id, random.pick([0.5, 2, -1.25])]];
      if (id.startsWith("b")) return [[id, draft.chance(0.6)]];
      const leaf = draft.leaves.find((one) => one.id === id)!;
      const isBatch = draft.batches.has(id);
      if (leaf.kind !== "data" || (!isBatch && draft.chance(0.4))) return [];
      return [[id, passedFor(draft, leaf, isBatch ? rows : undefined)]];
    });
    // Others in each call.
    const found = outer.map((id): [Id, number] => [id, 0.5 + i]);
    return { before: between, body: 0, args: Object.fromEntries([...given, ...found]) };
  });
}

function passedFor(draft: Draft, { fill }: Leaf, rows: number | undefined): Round["args"][Id] {
  const fresh = { ...fill, seed: draft.random.below(1 << 20) };
  return { fill: fresh, inside: draft.chance(0.15), ...(rows !== undefined && { rows }) };
}

/** A small program from a seed: one or two features that meet, all of which can be interpreted. */
import { Random } from "../../numbers/random";
import type { Id, OptimizerUse, Program, Round, Shape, Statement } from "../program";
import { Draft } from "./draft";
import { THEMES } from "./themes";
import { bodyOf, forgetTape } from "./training";

export function generateSmall(seed: number): Program {
  const random = new Random(seed);
  const dtypes = random.pick([["f32"], ["f32"], ["f64"], ["f32", "f64"]] as const);
  const draft = new Draft(random, dtypes, smallShape(random));
  const prelude = draft.inner(() => {});
  draft.inBody = true;
  const results: Id[] = [];
  const changes: Statement[] = [];
  let [isOver, isStepped] = [false, true];
  const statements = draft.inner(() => {
    for (let left = draft.chance(0.3) ? 2 : 1; left > 0 && !isOver; left--) {
      const theme = random.pick(THEMES)(draft);
      results.push(...(theme.results ?? []));
      prelude.push(...(theme.prelude ?? []));
      changes.push(...(theme.between ?? []));
      isStepped &&= !theme.isWithoutSteps;
      forgetTape(draft);
      isOver = theme.isOver === true;
    }
  });
  const frozen = new Set(prelude.map((one) => (one.do === "freezeLayer" ? one.layer : "")));
  const params = draft.leaves.filter(({ kind, of }) => kind === "parameter" && !frozen.has(of?.layer ?? "none"));
  const optimizers =
    params.length > 0 && isStepped && draft.chance(0.6)
      ? [
          optimizerOf(
            draft,
            params.map(({ id }) => id),
          ),
        ]
      : [];
  const steps = draft.inner(() => {
    for (const { id } of optimizers) {
      draft.statements.push({ do: "step", optimizer: id });
      if (draft.chance(0.8)) draft.statements.push({ do: "zeroGrad", optimizer: id, setToNull: draft.chance(0.8) });
    }
  });
  // No row-sparse gradient is left by a compiled body, and no data comes from the host.
  const isCleared = steps.some((one) => one.do === "zeroGrad" && one.setToNull);
  if (draft.layers.some(({ options }) => options.sparse) && !isCleared) draft.compiles = false;
  if (statements.some((one) => one.do === "gradient" && typeof one.value === "object")) draft.compiles = false;
  const body = bodyOf(draft, [...statements, ...steps], results);
  const rounds = Array.from({ length: random.pick([3, 4, 4, 5]) }, (_, i): Round => {
    const between = draft.inner(() => {
      if (i > 0 && draft.chance(0.5)) draft.statements.push(...changes);
      for (const leaf of draft.leaves) {
        const fill = { ...leaf.fill, seed: random.below(1 << 20) };
        if (i > 0 && leaf.of === undefined && draft.chance(0.1))
          draft.statements.push({ do: "set", to: leaf.id, from: fill });
      }
      if (i > 0 && draft.layers.some(({ kind }) => /Dropout|BatchNorm/.test(kind)) && draft.chance(0.5))
        draft.statements.push({ do: "train", training: draft.chance(0.4) });
    });
    const given = body.args.flatMap((id): [Id, Round["args"][Id]][] => {
      if (id.startsWith("k")) return [[id, random.pick([0.5, 2, -1.25])]];
      const leaf = draft.leaves.find((one) => one.id === id)!;
      if (leaf.kind !== "data" || draft.chance(0.4)) return [];
      return [[id, { fill: { ...leaf.fill, seed: random.below(1 << 20) }, inside: draft.chance(0.15) }]];
    });
    return { before: between, body: 0, args: Object.fromEntries(given) };
  });
  return {
    seed,
    leaves: draft.leaves,
    layers: draft.layers,
    optimizers,
    averages: [],
    scaler: statements.some((one) => one.do === "update") ? { initScale: 2 ** 16 } : null,
    prelude,
    bodies: [body],
    rounds,
    resume: { round: 1, order: ["model", "optimizer", "schedule"] },
    mayReject: [...draft.mayReject],
    compiles: draft.compiles,
    check: random.pick(["never", "never", "never", "spaced", "always"]),
  };
}

function smallShape(random: Random): Shape {
  const rank = random.pick([0, 1, 1, 2, 2, 2, 3, 4]);
  return Array.from({ length: rank }, () => (random.uniform() < 0.03 ? 0 : random.pick([1, 2, 3, 4, 5])));
}

function optimizerOf({ random }: Draft, params: readonly Id[]): OptimizerUse {
  const use = random.pick([
    { kind: "SGD", options: { lr: 0.1 } },
    { kind: "SGD", options: { lr: 0.1, momentum: 0.9, nesterov: true } },
    { kind: "SGD", options: { lr: 0.05, momentum: 0.5, weightDecay: 0.1 } },
    { kind: "Adam", options: { lr: 0.05, eps: 0.1 } },
    { kind: "Adam", options: { lr: 0.05, eps: 0.1, weightDecay: 0.1, betas: [0.5, 0.9] } },
  ]);
  return { id: "o0", ...use, groups: [{ params, options: {} }], schedule: null };
}

/** Rules with another update: where the weight decay goes, which elements move, and how far the whole moves. */
import { check } from "../../errors/errors";
import { derived } from "../../rule/derived";
import { distinctByHash } from "../../rule/distinct";
import type { Expression } from "../../rule/expression";
import { defineRule, type Rule, type RuleModification } from "../../rule/rule";
import { add, less, mul, neg, sub, where } from "../../rule/symbols";
import type { Decay } from "./options";
import { signOf } from "./sign";

/** The modifications of an update. */
export interface ModifiedUpdate {
  /** "l2" is no part of it: gradients come with it. */
  readonly decay: Exclude<Decay, "l2"> | null;
  readonly cautious: boolean;
  readonly hyperball: boolean;
  /** The rule scales the parameter by a scalar for its weight decay, which is 1 now. */
  readonly isScaled: boolean;
}

/**
 * Scalars that the step computes for each parameter: the factor of elements that move; R / |u|, or 0 for vectors; R / |p|, or 1 for vectors.
 */
export const STAGE_SCALARS: readonly string[] = ["cautiousBy", "lengthBy", "radiusBy"];

/** What a rule of `outcomeRule` writes: its update before `lengthBy`; its new value before `radiusBy`. */
export type UpdateOutcome = NonNullable<RuleModification["outcome"]>;

const isScalar = ({ op }: Expression) => op === "scalar";

/** What is added to the parameter; undefined if the new value is no sum that begins with it. */
function wayOf(end: Expression, param: Expression, isScaled: boolean): Expression | undefined {
  const isStart = (x: Expression): boolean =>
    x === param || (isScaled && x.op === "mul" && x.args[0] === param && isScalar(x.args[1]!));
  /** What is added to it in `x`; undefined if it is no sum that begins with it. */
  const added = (x: Expression): Expression | undefined => {
    const [a, b, c] = x.args as [Expression, Expression, Expression];
    if (x.op === "fma" && isStart(c)) return mul(a, b);
    if (x.op !== "add" && x.op !== "sub") return undefined;
    const more = x.op === "add" ? b : neg(b);
    if (isStart(a)) return more;
    if (x.op === "add" && isStart(b)) return a;
    const before = contains(b, param) ? undefined : added(a);
    return before && add(before, more);
  };
  const [whole, by] = end.args;
  const isKept = isScaled && end.op === "mul" && isScalar(by!);
  return added(isKept ? whole! : end);
}

/** True if one of the expressions is computed from another. */
function contains(whole: Expression, part: Expression): boolean {
  return whole === part || whole.args.some((each) => contains(each, part));
}

function modify(rule: Rule, { decay, cautious, hyperball, isScaled }: ModifiedUpdate) {
  const [param, grad] = rule.buffers as [string, string];
  return (buffers: Record<string, Expression>, scalars: Record<string, Expression>) => {
    const [p, g] = [buffers[param]!, buffers[grad]!];
    const updated = rule.update(buffers, scalars) as Record<string, Expression>;
    const added = wayOf(updated[param]!, p, isScaled);
    const whole = added ?? sub(updated[param]!, p);
    const moves = less(mul(whole, g), 0);
    const way = cautious ? where(moves, mul(whole, scalars.cautiousBy!), 0) : whole;
    const kept = decay === null ? p : mul(p, scalars.decayBy!);
    const start = decay === "cautious" ? where(less(0, mul(way, p)), p, kept) : kept;
    const far = hyperball
      ? where(less(0, scalars.lengthBy!), mul(way, mul(scalars.lrBy!, scalars.lengthBy!)), way)
      : way;
    const end = add(start, far);
    const isFollowed = Object.entries(updated).some(
      ([name, value]) => name !== param && contains(value, updated[param]!),
    );
    check(
      !isFollowed,
      "UNSUPPORTED",
      rule.name,
      () => "its state follows the new parameter, which cautious, hyperball and other decays change.",
      "Use another optimizer, or leave them out.",
    );
    const { [param]: _end, ...state } = updated;
    const isAdded = added !== undefined && ![added, ...Object.values(state)].some((value) => contains(value, p));
    return { updated, way, end, isAdded };
  };
}

/** The rule as devices know it that modify updates themselves: see `Rule.modified`. */
function withOrigin(
  rule: Rule,
  plain: Rule,
  update: ModifiedUpdate,
  outcome: UpdateOutcome | null,
  isAdded: boolean,
): Rule {
  if (!isAdded || plain.writes.includes(plain.buffers[1]!)) return rule;
  const { cautious, hyperball } = update;
  const decay = update.decay === null || update.decay === "cautious" ? update.decay : "everywhere";
  return { ...rule, modified: { rule: plain, modification: { decay, cautious, hyperball, outcome } } };
}

function scalarsOf({ decay, cautious, hyperball }: ModifiedUpdate): string[] {
  return [
    ...(decay === null ? [] : ["decayBy"]),
    ...(cautious ? ["cautiousBy"] : []),
    ...(hyperball ? ["lrBy", "lengthBy", "radiusBy"] : []),
  ];
}

const keyOf = ({ decay, cautious, hyperball, isScaled }: ModifiedUpdate) =>
  [decay, cautious, hyperball, isScaled].join();
const nameOf = (rule: Rule, { decay, cautious, hyperball }: ModifiedUpdate) =>
  `${rule.name} with ${[decay && `${decay} decay`, cautious && "caution", hyperball && "hyperball"].filter(Boolean).join(", ")}`;

/** The rule whose update is modified. Its scalars `decayBy` and `lrBy` are numbers of the options. */
export function modifiedRule(rule: Rule, update: ModifiedUpdate): Rule {
  return derived(rule, keyOf(update), () => modifiedBy(rule, update, null));
}

/** The rule that writes an outcome of a modified update into one more buffer. It has the same scalars. */
export function outcomeRule(rule: Rule, update: ModifiedUpdate, outcome: UpdateOutcome): Rule {
  return derived(rule, `${keyOf(update)} ${outcome}`, () => modifiedBy(rule, update, outcome));
}

function modifiedBy(rule: Rule, update: ModifiedUpdate, outcome: UpdateOutcome | null): Rule {
  const modified = modify(rule, update);
  const [param] = rule.buffers as [string];
  const { buffers, nonNegative = [] } = rule;
  let isAddedAlone = false;
  const made = defineRule({
    name: outcome ? `${outcome} of ${nameOf(rule, update)}` : nameOf(rule, update),
    buffers: outcome ? [...buffers, "outcome"] : buffers,
    nonNegative,
    scalars: [...rule.scalars, ...scalarsOf(update)],
    update(buffers, scalars) {
      const { updated, isAdded, ...outcomes } = modified(buffers, scalars);
      isAddedAlone = isAdded;
      if (outcome) return { outcome: outcomes[outcome] };
      return { ...updated, [param]: update.hyperball ? mul(outcomes.end, scalars.radiusBy!) : outcomes.end };
    },
  });
  return withOrigin(made, rule, update, outcome, isAddedAlone);
}

/**
 * The rule that writes 1 into one more buffer where the update and the gradient agree, else 0. It has the scalars of the plain rule, and reads
 * no more than the sign of the update needs: where numbers are too small or large for float32, the sign is that of the update before.
 */
export function movesRule(rule: Rule, isScaled: boolean): Rule {
  return derived(rule, `moves ${isScaled}`, () => {
    const [param, grad] = rule.buffers as [string, string];
    const { name, buffers, scalars, nonNegative = [] } = rule;
    return defineRule({
      name: `moves of ${name}`,
      buffers: [...buffers, "outcome"],
      scalars,
      update(buffers, scalars) {
        const { [param]: end } = rule.update(buffers, scalars) as Record<string, Expression>;
        const p = buffers[param]!;
        const symbols: Record<string, Expression> = { ...buffers, ...scalars };
        const positive = new Set(nonNegative.map((name) => symbols[name]!));
        const sign = signOf(wayOf(end!, p, isScaled) ?? sub(end!, p), positive);
        return { outcome: where(less(mul(sign, buffers[grad]!), 0), 1, 0) };
      },
    });
  });
}

const PLAIN: ModifiedUpdate = { decay: null, cautious: false, hyperball: false, isScaled: false };
const CAUTIOUS: readonly ModifiedUpdate[] = [
  { ...PLAIN, cautious: true },
  { ...PLAIN, cautious: true, decay: "decoupled" },
  { ...PLAIN, cautious: true, decay: "cautious" },
];
const ON_SPHERE: readonly ModifiedUpdate[] = [
  { ...PLAIN, hyperball: true },
  { ...PLAIN, hyperball: true, decay: "decoupled" },
];

/**
 * The rules of the modifications that go with a rule which decays nothing, for kernel builds: `cautious`, `hyperball` and `decay: "cautious"`, and
 * what a step launches before them.
 */
export function modifiedRules(rule: Rule): readonly Rule[] {
  return distinctByHash([
    modifiedRule(rule, { ...PLAIN, decay: "cautious" }),
    movesRule(rule, false),
    ...CAUTIOUS.map((update) => modifiedRule(rule, update)),
    ...ON_SPHERE.flatMap((update) => [
      modifiedRule(rule, update),
      outcomeRule(rule, update, "way"),
      outcomeRule(rule, update, "end"),
    ]),
  ]);
}

/** Rules: an optimizer's update of one element, written once and compiled by every device. */
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { Expression, RULE_OPS } from "./expression";
import { hashProgram, type Program, trace } from "./program";

export interface RuleDefinition<Buffer extends string, Scalar extends string> {
  /** For messages and generated text only. */
  readonly name: string;
  /** Per-element arrays, e.g. `param, grad, expAvg`. */
  readonly buffers: readonly Buffer[];
  /** Buffers that are never negative (averages of squares): their codes of 8 bits are twice as fine. Scalars may be named, too. */
  readonly nonNegative?: readonly (Buffer | Scalar)[];
  /** Per-step numbers: computed on the host in float64, rounded to the buffers' dtype at launch. */
  readonly scalars: readonly Scalar[];
  /** The new value of each buffer that changes. All reads see the old values. */
  update(buffers: Record<Buffer, Expression>, scalars: Record<Scalar, Expression>): Partial<Record<Buffer, Expression>>;
}

/** What may be done to the gradient before a rule sees it; a guard keeps all buffers as they are. See `rewritten`. */
export type Rewrite = "scale" | "clamp" | "l1" | "l2" | "guard";

/** What a step does with the update of a rule: see `modifiedRule`. */
export interface RuleModification {
  /** Where the parameter is decayed. */
  readonly decay: "everywhere" | "cautious" | null;
  readonly cautious: boolean;
  readonly hyperball: boolean;
  /** What the rule writes into its last buffer instead of its own: the update before `lengthBy`, or the new value before `radiusBy`. */
  readonly outcome: "way" | "end" | null;
}

export interface Rule<Buffer extends string = string, Scalar extends string = string>
  extends RuleDefinition<Buffer, Scalar> {
  readonly program: Program;
  /** Content hash: equal for rules that compute the same, so that kernels built ahead fit exactly the rule they were built from. */
  readonly hash: string;
  /** The buffers that change. */
  readonly writes: readonly Buffer[];
  /** What it was made from: devices that have a kernel for that rule need none for this one. */
  readonly rewritten?: { readonly rule: Rule; readonly rewrites: readonly Rewrite[] };
  /**
   * The same of a rule whose update was modified. That rule adds the update to its first buffer and reads it for nothing else, so it gives the
   * update itself where that is -0. Scalars of the modification come after its own: `decayBy`, `cautiousBy`, `lrBy`, `lengthBy`, `radiusBy`, as needed.
   */
  readonly modified?: { readonly rule: Rule; readonly modification: RuleModification };
}

/**
 * Defines an update rule. `update` is traced once, on symbols.
 *
 * @throws OptError BAD_ARGUMENT if names clash or are no identifiers, if `update` writes an undeclared buffer, writes nothing,
 * or uses an op outside of `RULE_OPS`.
 * @example
 * const sgd = defineRule({
 *   name: "sgd", buffers: ["param", "grad"], scalars: ["negLr"],
 *   update: ({ param, grad }, { negLr }) => ({ param: add(param, mul(negLr, grad)) }),
 * });
 */
export function defineRule<const Buffer extends string, const Scalar extends string>(
  definition: RuleDefinition<Buffer, Scalar>,
): Rule<Buffer, Scalar> {
  checkDefinition(definition);
  const { name, buffers, scalars, nonNegative = [], update } = definition;
  const where = `rule ${name}`;
  checkNames(where, [...buffers, ...scalars]);
  check(buffers.length > 0, "BAD_ARGUMENT", where, () => "a rule needs a buffer, got none.", "Name one in `buffers`.");
  const symbols = (kind: "buffer" | "scalar", names: readonly string[]) =>
    Object.fromEntries(names.map((symbol, slot) => [symbol, new Expression(kind, [], slot)]));
  const updated = update(
    symbols("buffer", buffers) as Record<Buffer, Expression>,
    symbols("scalar", scalars) as Record<Scalar, Expression>,
  );
  const isObject = typeof updated === "object" && updated !== null;
  check(
    isObject,
    "BAD_ARGUMENT",
    where,
    () => `update must return the new values by buffer, got ${String(updated)}.`,
    "Return { param: ... }.",
  );
  const writes = Object.keys(updated) as Buffer[];
  for (const write of writes) {
    check(
      buffers.includes(write),
      "BAD_ARGUMENT",
      where,
      () => `update may only write declared buffers, got ${write}.`,
      `Declared: ${buffers.join(", ")}.`,
    );
    const value = updated[write];
    const isNumber = value instanceof Expression && !value.isCondition;
    check(
      isNumber,
      "BAD_ARGUMENT",
      where,
      () => `the new ${write} must be a number expression, got ${String(value)}.`,
      "Build it with add, mul, ...",
    );
  }
  check(
    writes.length > 0,
    "BAD_ARGUMENT",
    where,
    () => "update must write a buffer, got none.",
    "Return { param: ... }.",
  );
  writes.sort((a, b) => buffers.indexOf(a) - buffers.indexOf(b));
  const program = trace(
    buffers,
    scalars,
    writes.map((write) => ({ slot: buffers.indexOf(write), expression: updated[write] as Expression })),
  );
  for (const { op } of program.nodes) {
    const isExact = ["buffer", "scalar", "constant", ...RULE_OPS].includes(op);
    check(
      isExact,
      "BAD_ARGUMENT",
      where,
      () => `rules are exact on every device, got the op ${op}.`,
      `Use only ${RULE_OPS.join(", ")}.`,
    );
  }
  return { name, buffers, scalars, nonNegative, update, program, hash: hashProgram(program), writes };
}

const DEFINITION = { name: "string", buffers: "array", scalars: "array", update: "function" } as const;

/** @throws OptError BAD_ARGUMENT */
function checkDefinition(definition: Partial<Record<keyof typeof DEFINITION, unknown>>): void {
  checkOptions("defineRule", definition, { ...DEFINITION, nonNegative: "array" });
  for (const part of Object.keys(DEFINITION) as (keyof typeof DEFINITION)[]) {
    check(
      definition[part] !== undefined,
      "BAD_ARGUMENT",
      "defineRule",
      () => `a rule needs ${part}, got none.`,
      "Pass { name, buffers, scalars, update }.",
    );
  }
}

/** @internal @throws OptError BAD_ARGUMENT, DUPLICATE for what some device could not write out */
export function checkNames(where: string, names: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of names) {
    const fits = /^[a-z][A-Za-z0-9]*$/.test(name);
    check(fits, "BAD_ARGUMENT", where, () => `names must be camelCase identifiers, got "${name}".`, "Rename it.");
    check(!seen.has(name), "DUPLICATE", where, () => `names must differ, got "${name}" twice.`, "Rename one.");
    seen.add(name);
  }
}

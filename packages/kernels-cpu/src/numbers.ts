/** Names as numbers. The build writes them for native code in this order: see generate/write-commands.ts. */
import { type DType, type Op, type Rewrite, RULE_OPS, type Spec, TRANSCENDENTAL_OPS } from "@opt/core/backend";

export const OPS: readonly Op[] = [...RULE_OPS, ...TRANSCENDENTAL_OPS];
const DTYPES: readonly DType[] = ["f32", "f64", "f16", "bf16", "i32", "u8", "bool"];

/** Enumerations of native code. Formats are the ways in which elements are stored: packed, or with stochastic rounding, too. */
export const ENUMERATIONS = {
  Format: [...DTYPES, "q8", "uq8", "bf16x", "bf16r", "f16r"],
  Reduction: ["sum", "mean", "max", "argmax"] satisfies readonly Spec<"reduce">["op"][],
  Rewrite: ["scale", "clamp", "l1", "l2", "guard"] satisfies readonly Rewrite[],
  /** Of `RuleModification`. */
  Decay: ["none", "everywhere", "cautious"],
  Outcome: ["none", "way", "end"],
  Status: ["ok", "badCommand", "outOfMemory"],
} as const;

export const numbered = <Name extends string>(names: readonly Name[]) =>
  Object.fromEntries(names.map((name, number) => [name, number])) as Record<Name, number>;

export const OP_NUMBER = numbered(OPS);
export const FORMAT_NUMBER = numbered(ENUMERATIONS.Format);
export const REDUCTION_NUMBER = numbered(ENUMERATIONS.Reduction);
export const DECAY_NUMBER = numbered(ENUMERATIONS.Decay);
export const OUTCOME_NUMBER = numbered(ENUMERATIONS.Outcome);
export const REWRITE_NUMBER = numbered(ENUMERATIONS.Rewrite);
/** The result of a launch. */
export const STATUS = numbered(ENUMERATIONS.Status);

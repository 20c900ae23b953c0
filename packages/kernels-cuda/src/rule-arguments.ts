/** The arguments of a kernel of rules: the formats of its buffers, rewrites, and the place of each scalar. */
import {
  isPacked,
  isRandom,
  type Rewrite,
  type Rule,
  type Scalar,
  type Spec,
  type StoredFormats,
} from "@opt/core/backend";
import type { RuleForm } from "./generate/write-kernels";

/** In the order of STORED_* in native/cuda/kernels/elements.cuh; undefined means not stored. */
const STORED_FORMATS: readonly (StoredFormats[number] | undefined)[] = [
  "f32",
  "bf16",
  "f16",
  undefined,
  "q8",
  "uq8",
  "bf16x",
  "bf16r",
  "f16r",
];

/** Of a format among those of all buffers. */
const FORMAT_BITS = 16;

/** In the order of REWRITE_* there, from 1 on. */
const REWRITES: readonly Rewrite[] = ["scale", "clamp", "l1", "l2", "guard"];
const MAX_REWRITES = 6;
/** The last scalars of launches that round at random. */
export const KEYS = 2;

/** The rule whose kernel serves a spec, and the form of it: rewrites in float32 are told to the kernel of the rule that they were made for. */
export function ruleForm({ rule, dtype, stored }: Spec<"rule">): [Rule, RuleForm] {
  const { rewritten } = rule;
  const form = stored?.some(isPacked) ? "packed" : "stored";
  if (dtype === "f32" && rewritten && rewritten.rewrites.length <= MAX_REWRITES) return [rewritten.rule, form];
  return [rule, stored ? form : dtype];
}

/** Scalars of the kernel of a rule in its stored forms: its own, those of rewrites, and keys. */
export const slotsOf = ({ scalars }: Rule) => scalars.length + MAX_REWRITES + KEYS;

/** The scalars of a rule's launch as its kernel finds them: keys are the last of all. */
export function scalarsBySlot(spec: Spec<"rule">, scalars: readonly Scalar[]): readonly Scalar[] {
  if (!isRandom(spec.stored?.[0])) return scalars;
  const [own] = ruleForm(spec);
  const unused = new Array<number>(slotsOf(own) - scalars.length).fill(0);
  return [...scalars.slice(0, -KEYS), ...unused, ...scalars.slice(-KEYS)];
}

export function packedRewrites({ rewritten }: Rule, own: Rule): number {
  if (rewritten?.rule !== own) return 0;
  return rewritten.rewrites.reduce((bits, rewrite, k) => bits + (REWRITES.indexOf(rewrite) + 1) * 8 ** k, 0);
}

export function packedFormats(stored: StoredFormats, count: number): number {
  let bits = 0;
  for (let slot = 0; slot < count; slot++) bits += STORED_FORMATS.indexOf(stored[slot]) * FORMAT_BITS ** slot;
  return bits;
}

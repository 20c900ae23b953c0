/** Numbers shared with native/cpu/src/opcode.h and kernels/program-ops.h, in the same order. */
import { type DType, type Kind, type Op, type Rewrite, RULE_OPS, TRANSCENDENTAL_OPS } from "@opt/core/backend";

/** How commands are written: a binary of another format would read them as something else. */
export const COMMAND_FORMAT = 8;

const KINDS = [
  "rule",
  "map",
  "reduce",
  "sumSquares",
  "matmul",
  "copy",
  "gather",
  "scatterAdd",
  "rows",
  "unfold",
  "fold",
  "maxPool2d",
  "maxPool2dGrad",
  "attention",
  "attentionGrad",
  "batchNorm",
  "batchNormGrad",
  "lstm",
  "lstmGrad",
] as const satisfies readonly Kind[];

const OPS: readonly Op[] = [...RULE_OPS, ...TRANSCENDENTAL_OPS];
const DTYPES: readonly DType[] = ["f32", "f64", "f16", "bf16", "i32", "u8", "bool"];
const REDUCTIONS = ["sum", "mean", "max", "argmax"] as const;

const REWRITES = ["scale", "clamp", "l1", "l2", "guard"] as const satisfies readonly Rewrite[];

const numbered = <Name extends string>(names: readonly Name[]) =>
  Object.fromEntries(names.map((name, number) => [name, number])) as Record<Name, number>;

/** `list`: commands one after the other. */
export const OPCODE = { list: -1, ...numbered(KINDS) };
export const OP_NUMBER = numbered(OPS);
export const DTYPE_NUMBER = numbered(DTYPES);
/** In the order of PackedDType and RandomDType in native/cpu/src/kernels/stored.h, after the dtypes. */
export const FORMAT_NUMBER = numbered([...DTYPES, "q8", "uq8", "bf16r", "f16r"]);
export const REDUCTION_NUMBER = numbered(REDUCTIONS);
/** In the order of Rewrite in native/cpu/src/kernels/rule.cc. */
export const REWRITE_NUMBER = numbered(REWRITES);

/** What a launch came to, as native code says it. */
export const STATUS = { ok: 0, badCommand: 1, outOfMemory: 2 } as const;

/** Kernels of the cpu device: a number each, and for programs their instructions. */
import { OptError } from "@opt/core";
import { isPacked, type Rule, type Spec, withMirror } from "@opt/core/backend";
import type { Addon } from "./addon";
import { codebookAddresses } from "./codebook";
import { OPCODE } from "./commands";
import type { CpuKernel } from "./launch";
import { encodeProgram } from "./program";

/** Places in the binary's tables by hash. */
export type Numbers = ReadonlyMap<string, number>;

/** @throws OptError UNSUPPORTED for a row program that is not in the binary */
export function compile(spec: Spec, addon: Addon, ruleNumbers: Numbers, rowNumbers: Numbers): CpuKernel {
  const plain = { spec, opcode: OPCODE[spec.kind] };
  if (spec.kind === "rows") {
    const rowsNumber = rowNumbers.get(spec.program.hash);
    if (rowsNumber !== undefined) return { ...plain, rowsNumber };
    const problem = `the row program "${spec.program.name}" was not compiled into @opt/kernels-cpu.`;
    throw new OptError("UNSUPPORTED", "cpu", problem, "Move these tensors to another device.");
  }
  if (spec.kind === "rule") {
    const kernel = { ...plain, ...(spec.stored?.some(isPacked) && { codebooks: codebookAddresses(addon) }) };
    // Rewrites are steps of their own before the kernel of the rule that they were made for.
    const built = builtRule(spec.rule, ruleNumbers);
    // Around a plain rule outcomes are summed, and not stored.
    const isStored = built?.modified !== undefined && built.modified.modification.outcome !== null && !spec.sums;
    if (built !== undefined && !isStored) return { ...kernel, ...built };
    noticeUnbuilt(spec.rule);
    const program = withMirror(spec.rule.program, spec.stored);
    const targets = program.outputs.map(({ slot }) => slot);
    const code = encodeProgram(program, program.buffers.length, targets);
    return { ...kernel, opcode: OPCODE.map, ...withAddress(code, addon) };
  }
  const program = spec.kind === "map" ? spec.program : spec.kind === "matmul" ? spec.epilogue : undefined;
  if (program !== undefined) {
    // The output is one more buffer after the inputs.
    const inputs = program.buffers.length;
    return { ...plain, ...withAddress(encodeProgram(program, inputs + 1, [inputs]), addon) };
  }
  return plain;
}

/** The number of a rule, or of the one that it was made from: rewrites and modifications are steps of their own around its kernel. */
export function builtRule(
  { rewritten, ...rule }: Rule,
  numbers: Numbers,
): Pick<CpuKernel, "ruleNumber" | "modified"> | undefined {
  const { hash, modified } = rewritten?.rule ?? rule;
  const own = numbers.get(hash);
  if (own !== undefined) return { ruleNumber: own };
  const ruleNumber = modified && numbers.get(modified.rule.hash);
  return ruleNumber === undefined ? undefined : { ruleNumber, modified: modified! };
}

function withAddress(code: Float64Array, addon: Addon) {
  return { code, codeAddress: addon.address(code) };
}

const noticed = new Set<string>();

/** Once a process and rule: the same results, two to four times slower. */
function noticeUnbuilt({ name, hash }: Rule): void {
  if (noticed.has(hash)) return;
  noticed.add(hash);
  const advice = "It runs op by op: right, but slower than the rules of @opt's own optimizers.";
  process.emitWarning(`The rule "${name}" was not compiled into @opt/kernels-cpu. ${advice}`, {
    code: "OPT_RULE_NOT_BUILT",
  });
}

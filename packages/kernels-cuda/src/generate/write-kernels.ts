/**
 * Writes rules and maps out as CUDA kernels over the loops of native/cuda/kernels/elements.cuh.
 * Names of ours end in an underscore, which no buffer's or scalar's name can.
 */
import {
  type ComputeDType,
  codebookOf,
  distinctByHash,
  indent,
  LEAST_SCALE,
  type Program,
  type Rule,
  writeStatements,
} from "@opt/core/backend";
import { cuda, TYPE } from "./dialect";

/** All buffers in one dtype, or in the formats that a launch says, computed in f32: element by element, or some of them packed. */
export type RuleForm = ComputeDType | "stored" | "packed";

export const RULE_FORMS = ["f32", "f64", "stored", "packed"] as const satisfies readonly RuleForm[];

/** The name of a rule's kernel: what it computes, not what the rule is called. */
export function ruleKernelName(rule: Rule, form: RuleForm): string {
  return `rule_${rule.hash}_${form}`;
}

/** Scalars travel as float64; what is rounded here is what the interpreter rounds. */
function rounded(dtype: ComputeDType, text: string): string {
  return dtype === "f32" ? `__double2float_rn(${text})` : text;
}

/**
 * A rule as one kernel over a table of chunks. In the stored form the launch says how buffers are stored and what is done to the
 * gradient before.
 */
export function writeRule(rule: Rule, form: RuleForm): string {
  const { buffers, scalars, writes, program, name } = rule;
  const isStored = form === "stored" || form === "packed";
  const dtype = isStored ? "f32" : form;
  const type = TYPE[dtype];
  const { uniform, element } = writeStatements(program, cuda, dtype, {
    scalar: (slot) => `given_.at(${slot})`,
    load: (slot) => `element_[${slot}]`,
    store: (slot, _name, value) => `element_[${slot}] = ${value};`,
  });
  const mask = writes.reduce((bits, write) => bits | (1 << buffers.indexOf(write)), 0);
  const each = { stored: "forEachStored", packed: "forEachPacked", f32: "forEachElement", f64: "forEachElement" }[form];
  const books = form === "packed" ? "CODEBOOKS, " : "";
  const how = isStored ? `formats_, ${books}Rewrites(rewrites_, given_), Keys(formats_, given_), ` : "";
  const elements = `${isStored ? "" : `${type}, `}${buffers.length}, 0b${mask.toString(2)}`;
  return [
    `// ${name}`,
    `extern "C" __global__ void __launch_bounds__(THREADS, 1) ${ruleKernelName(rule, form)}(`,
    `    const Chunk<${buffers.length + (isStored ? 1 : 0)}>* chunks_, Index count_,${isStored ? " Index formats_, Index rewrites_," : ""}`,
    `    Given<${type}, ${scalars.length}${isStored ? " + MAX_REWRITES + KEYS" : ""}> given_) {`,
    ...indent(uniform, 2),
    `  ${each}<${elements}>(chunks_, count_, ${how}[=](${type}* element_) {`,
    ...indent(element, 4),
    "  });",
    "}",
  ].join("\n");
}

/** The codes of packed state, which the kernels of the packed form refer to. */
export function writeCodebooks(): string {
  const float = (value: number) => `${Number.isInteger(value) ? value.toFixed(1) : value}f`;
  const books = (["q8", "uq8"] as const).map((format) => {
    const { edges, slope, offset, cap, step, start } = codebookOf(format);
    const lists = [edges, slope, offset, cap, step, start].map((list) => `{${[...list].map(float).join(", ")}}`);
    return `    {${lists.join(", ")}, ${format === "q8"}, ${float(LEAST_SCALE)}},`;
  });
  return ["__device__ const Codebook CODEBOOKS[] = {", ...books, "};"].join("\n");
}

/** A map as one kernel. */
export function writeMap(program: Program, dtype: ComputeDType, kernelName: string): string {
  const { buffers, scalars } = program;
  const type = TYPE[dtype];
  const { uniform, element } = writeStatements(program, cuda, dtype, {
    scalar: (slot) => rounded(dtype, `given_.values[${slot}]`),
    load: (slot) => `element_[${slot}]`,
    store: (_slot, _name, value) => `return ${value};`,
  });
  return [
    `extern "C" __global__ void __launch_bounds__(THREADS, 1) ${kernelName}(`,
    `    ${type}* output_, Walk<${buffers.length}> walk_, Scalars<${scalars.length}> given_) {`,
    ...indent(uniform, 2),
    `  mapElements<${type}, ${buffers.length}>(walk_, output_, [=]([[maybe_unused]] const ${type}* element_) {`,
    ...indent(element, 4),
    "  });",
    "}",
  ].join("\n");
}

/** The source of all kernels of a list of rules, each in every form. Rules that compute the same are written once. */
export function writeRules(rules: readonly Rule[]): string {
  const distinct = distinctByHash(rules);
  const kernels = distinct.flatMap((rule) => RULE_FORMS.flatMap((form) => [writeRule(rule, form), ""]));
  const head = "// Written by @opt/kernels-cuda from the rules of the algorithm packages.";
  return [head, '#include "elements.cuh"', "", writeCodebooks(), "", ...kernels].join("\n");
}

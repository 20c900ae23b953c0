/** The commands of native code: the fields of each, and how a launch fills them. The build makes C++ structs of the same fields. */
import {
  type AttentionSizes,
  denseStrides,
  fieldsOf,
  type HeadStrides,
  headShapes,
  isRandom,
  type Kind,
  type Launch,
  mergeDimensions,
  reach,
  rowElements,
  type Slice,
  type Spec,
  type StoredFormats,
  sizeOf,
  windowFields,
  withoutDraws,
} from "@opt/core/backend";
import type { CommandWriter, Repeatable } from "./command";
import { type FieldDescription, Fields, signatureOf } from "./fields";
import { HOST_COMMANDS } from "./host-commands";
import type { CpuKernel, On } from "./launch";
import { bug } from "./memory";
import {
  DECAY_NUMBER,
  ENUMERATIONS,
  FORMAT_NUMBER,
  numbered,
  OPS,
  OUTCOME_NUMBER,
  REDUCTION_NUMBER,
  REWRITE_NUMBER,
} from "./numbers";

type ProgramLaunch = On<"rule"> | On<"map">;
type Tensors = Launch<"rule">["tensors"];

const isDouble = ({ kernel }: { kernel: { spec: { dtype: string } } }) => kernel.spec.dtype === "f64";

/** A rule that was compiled ahead, over a list of tensors. */
const RULE = new Fields<On<"rule">>("Rule")
  .flag("isDouble", isDouble)
  .number("number", "integer", ({ kernel }) => kernel.ruleNumber!)
  .number("buffers", "integer", ({ kernel }) => kernel.spec.rule.buffers.length)
  .list("scalars", writeScalars)
  .list("rewrites", (to, { kernel, scalars }) => {
    const { rule, dtype } = kernel.spec;
    rule.rewritten?.rewrites.forEach((rewrite, k) => {
      to.number(REWRITE_NUMBER[rewrite]);
      to.scalar(scalars, rule.rewritten!.rule.scalars.length + k, dtype);
    });
  })
  .list("modification", (to, { kernel, scalars }) => {
    const { modified } = kernel;
    if (modified === undefined) return;
    const { decay, cautious, hyperball, outcome } = modified.modification;
    to.list([DECAY_NUMBER[decay ?? "none"], Number(cautious), Number(hyperball), OUTCOME_NUMBER[outcome ?? "none"]]);
    let at = modified.rule.scalars.length;
    for (const isUsed of [decay !== null, cautious, hyperball, hyperball, hyperball]) {
      if (isUsed) to.scalar(scalars, at++, kernel.spec.dtype);
      else to.number(0);
    }
  })
  .flag("sums", ({ kernel }) => kernel.spec.sums ?? false)
  .list("formats", (to, { kernel }) => {
    const { spec, modified } = kernel;
    if (spec.stored === undefined && !spec.rule.rewritten && !modified && !spec.sums) return;
    formatsOf(spec).forEach((format, slot) => {
      const { nodes } = spec.rule.program;
      const isUsed = spec.sums
        ? nodes.some(({ op, value }) => op === "buffer" && value === slot)
        : isWritten(spec, slot);
      to.list([format === spec.dtype ? 0 : FORMAT_NUMBER[format], Number(isUsed)]);
    });
  })
  .list("keys", writeKeys)
  .list("codebooks", writeCodebooks)
  .list("tensors", writeTensors);

/** A program for the block interpreter: a map, or a rule that was not compiled ahead. Its tensors have a record of each buffer. */
const PROGRAM = new Fields<ProgramLaunch>("Program")
  .flag("isDouble", isDouble)
  .number("code", "code", ({ kernel }) => kernel.codeAddress!)
  .list("scalars", writeScalars)
  .list("shape", (to, launch) => {
    if (launch.kind === "map") to.list(launch.shape);
  })
  .list("keys", writeKeys)
  .list("codebooks", writeCodebooks)
  .list("tensors", writeTensors);

const WALK = new Fields<ReturnType<typeof mergeDimensions>>("Walk")
  .list("shape", (to, { shape }) => to.list(shape))
  .list("sourceStrides", (to, { strides }) => to.list(strides[0]!))
  .list("targetStrides", (to, { strides }) => to.list(strides[1]!));

type AttentionPlaces = AttentionSizes & HeadStrides;
const ATTENTION = new Fields<AttentionPlaces>("AttentionSizes")
  .integers("batch", "queries", "keys", "width", "columns", "heads")
  .list("strides", (to, { strides }) => {
    for (const walk of strides) to.list(walk);
  })
  .number("scale", "number", ({ scale }) => scale)
  .flag("causal", ({ causal }) => causal);
/** Elements that an operand of attention reaches over, by its place in `HeadStrides.strides`. */
const ofHeads = (operand: number) => (launch: AttentionPlaces) => {
  const shape = [launch.batch / launch.heads, launch.heads, ...headShapes(launch)[operand]!];
  return reach(shape, [...launch.strides[operand]!, 1]).after;
};

const WINDOW = windowFields();

const REDUCE = new Fields<On<"reduce">>("Reduce")
  .number("reduction", "integer", ({ kernel }) => REDUCTION_NUMBER[kernel.spec.op])
  .shared(fieldsOf("reduce"));

/** Of no rows where a product has no sums. */
const sumsOf = ({ kernel: { spec }, a, sums, m, k }: On<"matmul">) =>
  ({
    kernel: { spec: { op: "sum", dtype: spec.dtype } },
    ...{ input: a, output: sums ?? a, outer: sums ? 1 : 0, length: k, inner: m },
  }) as On<"reduce">;

type Command<K extends Kind> = FieldDescription & Pick<Fields<On<K>>, "write">;

const COMMANDS: { readonly [K in Kind]: Command<K> } = {
  rule: RULE,
  map: PROGRAM,
  reduce: REDUCE,
  sumSquares: new Fields<On<"sumSquares">>("SumSquares")
    .number("format", "integer", ({ kernel }) => FORMAT_NUMBER[kernel.spec.stored ?? kernel.spec.dtype])
    .flag("nonFinite", ({ kernel }) => kernel.spec.nonFinite ?? false)
    .list("lengths", (to, { inputs }) => to.list(inputs.map(({ length }) => length)))
    .list("inputs", (to, { kernel, inputs }) => {
      const { stored, dtype } = kernel.spec;
      for (const input of inputs) to.slice(input, stored ?? dtype, input.length);
    })
    .field("output", "bytes", (to, { kernel, inputs, output }) => to.slice(output, kernel.spec.dtype, inputs.length)),
  matmul: new Fields<On<"matmul">>("Matmul")
    .flag("transposeA", ({ kernel }) => kernel.spec.transposeA)
    .flag("transposeB", ({ kernel }) => kernel.spec.transposeB)
    .shared(fieldsOf("matmul"))
    .list("window", (to, { window }) => {
      if (window) WINDOW.write(to, window);
    })
    .group("sums", REDUCE, sumsOf)
    // The rest is the epilogue; without one its code is null.
    .number("code", "code", ({ kernel }) => kernel.codeAddress ?? 0)
    .list("scalars", (to, { kernel, epilogue }) => {
      if (!epilogue) return;
      checkCount("scalars", epilogue.scalars.length, kernel.spec.epilogue!.scalars.length);
      to.list(epilogue.scalars);
    })
    .list("operands", (to, { kernel, epilogue, batch, m, n }) => {
      if (!epilogue) return;
      checkCount("operands", epilogue.operands.length + 1, kernel.spec.epilogue!.buffers.length);
      epilogue.operands.forEach((operand, i) => {
        const strides = epilogue.strides[i]!;
        writeRecord(to, operand, kernel.spec.dtype, reach([batch, m, n], strides).after);
        to.list(strides);
      });
    })
    .field("product", "writes", (to, { kernel, epilogue, batch, m, n }) => {
      if (epilogue?.product) to.slice(epilogue.product, kernel.spec.dtype, batch * m * n);
      else to.number(0);
    }),
  copy: new Fields<On<"copy">>("Copy")
    .number("from", "integer", ({ kernel }) => FORMAT_NUMBER[kernel.spec.from])
    .number("to", "integer", ({ kernel }) => FORMAT_NUMBER[kernel.spec.to])
    .group("walk", WALK, ({ shape, sourceStrides, targetStrides }) =>
      mergeDimensions(shape, [sourceStrides, targetStrides]),
    )
    .field("source", "bytes", (to, { kernel, source, shape, sourceStrides }) => {
      const { before, after } = reach(shape, sourceStrides);
      to.slice(source, kernel.spec.from, after, before);
    })
    .field("target", "bytes", (to, { kernel, target, shape, targetStrides }) => {
      to.slice(target, kernel.spec.to, reach(shape, targetStrides).after);
    }),
  gather: fieldsOf("gather"),
  scatterAdd: fieldsOf("scatterAdd"),
  rows: new Fields<On<"rows">>("Rows")
    .flag("isDouble", isDouble)
    .number("program", "integer", ({ kernel }) => kernel.rowsNumber!)
    .integers("rows", "length", "ignoreIndex")
    .list("scalars", (to, { kernel, scalars }) => {
      checkCount("scalars", scalars.length, kernel.spec.program.scalars.length);
      to.list(scalars);
    })
    .field("labels", "readsIndices", (to, { kernel, labels, rows }) => {
      if (kernel.spec.program.labels) to.slice(labels!, "i32", rows);
      else to.number(0);
    })
    .list("inputs", (to, launch) => writeRowSlices(to, launch, "inputs"))
    .list("outputs", (to, launch) => writeRowSlices(to, launch, "outputs")),
  unfold: fieldsOf("unfold"),
  fold: fieldsOf("fold"),
  maxPool2d: fieldsOf("maxPool2d"),
  maxPool2dGrad: fieldsOf("maxPool2dGrad"),
  attention: new Fields<On<"attention">>("Attention")
    .group("sizes", ATTENTION, (launch) => launch)
    .reads(ofHeads(0), "query")
    .reads(ofHeads(1), "key")
    .reads(ofHeads(2), "value")
    .writes(ofHeads(3), "output"),
  attentionGrad: new Fields<On<"attentionGrad">>("AttentionGrad")
    .group("sizes", ATTENTION, (launch) => launch)
    .reads(ofHeads(0), "query")
    .reads(ofHeads(1), "key")
    .reads(ofHeads(2), "value")
    .reads(ofHeads(3), "gradient")
    .writes(ofHeads(4), "queryGradient")
    .writes(ofHeads(5), "keyGradient")
    .writes(ofHeads(6), "valueGradient"),
  batchNorm: fieldsOf("batchNorm"),
  batchNormGrad: fieldsOf("batchNormGrad"),
  groupNorm: fieldsOf("groupNorm"),
  groupNormGrad: fieldsOf("groupNormGrad"),
  lstm: fieldsOf("lstm"),
  lstmGrad: fieldsOf("lstmGrad"),
};

const ALL = { ...COMMANDS, ...HOST_COMMANDS };

/** `list`: commands one after the other. */
export const OPCODE = { list: -1, ...numbered(Object.keys(ALL) as (keyof typeof ALL)[]) };

/** All commands, in the order of their opcodes. */
export const DESCRIPTIONS: readonly FieldDescription[] = Object.values<FieldDescription>(ALL);

/** Identity of what both sides must agree on, by FNV-1a. A binary of another format would misread commands. */
export function commandFormat(): number {
  const text = JSON.stringify([DESCRIPTIONS.map(signatureOf), ENUMERATIONS, OPS]);
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

export function writeLaunch(to: CommandWriter, launch: Launch): void {
  const { opcode, spec } = launch.kernel as CpuKernel;
  const fields = opcode === OPCODE.map ? PROGRAM : COMMANDS[launch.kind];
  if (fields.isTyped) to.flag((spec as Spec<"reduce">).dtype === "f64");
  (fields as Command<Kind>).write(to, launch as On<Kind>);
}

/** Scalars of the rule itself: those of modifications and rewrites follow. */
function ownScalars({ ruleNumber, modified, spec: { rule } }: CpuKernel<"rule">): number {
  if (ruleNumber === undefined) return rule.scalars.length;
  return (modified?.rule ?? rule.rewritten?.rule ?? rule).scalars.length;
}

function writeScalars(to: CommandWriter, { kernel, kind, scalars }: ProgramLaunch): void {
  const { spec } = kernel;
  const count = spec.kind === "map" ? spec.program.scalars.length : spec.rule.scalars.length;
  checkCount("scalars", scalars.length, spec.kind === "rule" && isRandom(spec.stored?.[0]) ? count + 2 : count);
  const own = kind === "rule" ? ownScalars(kernel) : count;
  for (let i = 0; i < own; i++) to.scalar(scalars, i, spec.dtype as "f32" | "f64");
}

/** The keys of stochastic rounding, where it is used. */
function writeKeys(to: CommandWriter, { kernel, kind, scalars }: ProgramLaunch): void {
  if (kind === "map") return;
  for (let i = kernel.spec.rule.scalars.length; i < scalars.length; i++) to.scalar(scalars, i, kernel.spec.dtype);
}

/** The codebooks of packed buffers. */
function writeCodebooks(to: CommandWriter, { kernel }: ProgramLaunch): void {
  if (kernel.codebooks) to.list(kernel.codebooks);
}

/** How many tensors there are, how many elements come before each of them, and how many in all. Then the records of each tensor. */
function writeTensors(to: CommandWriter, launch: ProgramLaunch): void {
  if (launch.kind === "rule") {
    // An optimizer launches the same list again while its gradients stay where they are.
    to.repeatable(launch.tensors as Tensors & Repeatable, launch.kernel, writeRuleTensors);
    return;
  }
  const { kernel, inputs, output, shape, strides } = launch;
  const { program, dtype } = kernel.spec;
  checkCount("inputs", inputs.length, program.buffers.length);
  checkCount("dimensions", Math.min(shape.length, 16), shape.length);
  const size = sizeOf(shape);
  to.list([1, 0, size]);
  inputs.forEach((input, i) => {
    writeRecord(to, input, dtype, reach(shape, strides[i]!).after);
    to.list(strides[i]!);
  });
  writeRecord(to, output, dtype, size);
  to.list(denseStrides(shape));
}

function writeRuleTensors(to: CommandWriter, tensors: Tensors, { ruleNumber, spec }: CpuKernel<"rule">): void {
  const formats = formatsOf(spec);
  let start = 0;
  to.list([tensors.length, start]);
  for (const slices of tensors) {
    start += slices[0]!.length;
    to.number(start);
  }
  for (const slices of tensors) {
    checkCount("buffers", slices.length, formats.length);
    slices.forEach((slice, slot) => {
      const format = formats[slot]!;
      const dtype = isRandom(format) ? withoutDraws(format) : format;
      const number = format === spec.dtype ? 0 : FORMAT_NUMBER[format];
      const isSum = spec.sums === true && slot === slices.length - 1;
      if (ruleNumber !== undefined) to.slice(slice, dtype, isSum ? 1 : slices[0]!.length);
      else writeRecord(to, slice, dtype, slices[0]!.length, number, isWritten(spec, slot), slice.place);
    });
    if (ruleNumber !== undefined && isRandom(formats[0])) to.number(slices[0]!.place!);
  }
}

/** A buffer of a program, up to its strides: those follow, in elements. */
function writeRecord(
  to: CommandWriter,
  slice: Slice,
  dtype: Parameters<CommandWriter["slice"]>[1],
  needed: number,
  format = 0,
  written = false,
  place = 0,
): void {
  to.slice(slice, dtype, needed);
  to.list([format, Number(written), place]);
}

function writeRowSlices(to: CommandWriter, launch: On<"rows">, which: "inputs" | "outputs"): void {
  const { program, dtype } = launch.kernel.spec;
  const needed = rowElements(launch);
  program[which].forEach(({ kind }, slot) => {
    to.slice(launch[which][slot]!, dtype, needed[kind]);
  });
}

function formatsOf({ stored, rule, dtype }: Spec<"rule">): StoredFormats {
  return stored ?? rule.buffers.map(() => dtype as StoredFormats[number]);
}

/** A mirror, which comes after the rule's buffers, is. */
function isWritten({ rule: { program } }: Spec<"rule">, slot: number): boolean {
  return slot >= program.buffers.length || program.outputs.some((output) => output.slot === slot);
}

function checkCount(what: string, actual: number, expected: number): void {
  if (actual !== expected) throw bug(`the kernel takes ${expected} ${what}, got ${actual}.`);
}

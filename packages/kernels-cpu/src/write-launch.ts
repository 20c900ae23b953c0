/** Launches as commands, by kind. Each writer matches the reader of its kind in native/cpu/src/kernels. */
import {
  headShapes,
  isRandom,
  type Kind,
  type Launch,
  type Rule,
  type SequenceSizes,
  type Slice,
  type Spec,
  type StoredFormats,
  type Window2d,
  withoutDraws,
} from "@opt/core/backend";
import type { CommandWriter, Repeatable } from "./command";
import type { CpuKernel } from "./kernel";
import { bug } from "./memory";
import { DTYPE_NUMBER, FORMAT_NUMBER, REDUCTION_NUMBER, REWRITE_NUMBER } from "./opcode";
import { isDense, mergeDimensions, reach, type Walk } from "./strides";

type Writer<K extends Kind> = (to: CommandWriter, launch: Launch<K>) => void;

export function writeLaunch(to: CommandWriter, launch: Launch): void {
  (WRITERS[launch.kind] as Writer<Kind>)(to, launch);
}

const WRITERS: { readonly [K in Kind]: Writer<K> } = {
  rule(to, launch) {
    const { tensors, scalars: given } = launch;
    const kernel = launch.kernel as CpuKernel<"rule">;
    const { ruleNumber, codeAddress, codebooks, spec } = kernel;
    const { scalars: names, rewritten } = spec.rule;
    const count = names.length;
    const isDrawn = isRandom(spec.stored?.[0]);
    checkCount("scalars", given.length, isDrawn ? count + 2 : count);
    const built = ruleNumber !== undefined;
    const own = built && rewritten ? rewritten.rule.scalars.length : count;
    to.flag(spec.dtype === "f64");
    to.number(built ? ruleNumber : codeAddress!);
    to.number(own);
    for (let i = 0; i < own; i++) to.scalar(given[i]!, spec.dtype);
    if (built) {
      to.number(spec.rule.buffers.length);
      to.number(count - own);
      for (let i = own; i < count; i++) {
        to.number(REWRITE_NUMBER[rewritten!.rewrites[i - own]!]);
        to.scalar(given[i]!, spec.dtype);
      }
      const inBlocks = spec.stored !== undefined || count > own;
      if (inBlocks) writeFormats(to, spec);
      else to.number(0);
    } else to.number(0); // rank: all buffers are dense
    to.flag(isDrawn);
    for (let i = count; i < given.length; i++) to.scalar(given[i]!, spec.dtype);
    to.flag(codebooks !== undefined);
    if (codebooks) to.list(codebooks);
    // An optimizer launches the same list again while its gradients stay where they are.
    to.repeatable(tensors as Tensors & Repeatable, kernel, writeTensors);
  },

  map(to, { kernel, inputs, output, scalars, shape, strides }) {
    const { codeAddress, spec } = kernel as CpuKernel<"map">;
    checkCount("scalars", scalars.length, spec.program.scalars.length);
    checkCount("inputs", inputs.length, spec.program.buffers.length);
    checkCount("dimensions", Math.min(shape.length, 16), shape.length);
    const size = shape.reduce((product, extent) => product * extent, 1);
    to.flag(spec.dtype === "f64");
    to.number(codeAddress!);
    to.number(scalars.length);
    to.list(scalars);
    to.number(shape.length);
    to.list(shape);
    to.flag(false); // nothing is rounded at random
    to.flag(false); // nor packed
    to.number(1);
    to.number(0);
    to.number(size);
    inputs.forEach((input, i) => {
      to.slice(input, spec.dtype, reach(shape, strides[i]!).after);
      const strided = !isDense(shape, strides[i]!);
      to.number(strided ? LAYOUT.strided : LAYOUT.dense);
      if (strided) to.list(strides[i]!);
    });
    to.slice(output, spec.dtype, size);
    to.number(LAYOUT.dense);
  },

  reduce(to, { kernel, input, output, outer, length, inner }) {
    const { op, dtype } = kernel.spec;
    to.flag(dtype === "f64");
    to.number(REDUCTION_NUMBER[op]);
    to.number(outer);
    to.number(length);
    to.number(inner);
    to.slice(input, dtype, outer * length * inner);
    to.slice(output, op === "argmax" ? "i32" : dtype, outer * inner);
  },

  sumSquares(to, { kernel, inputs, output }) {
    const { dtype, stored = dtype, nonFinite = false } = kernel.spec;
    to.number(DTYPE_NUMBER[stored]);
    to.flag(nonFinite);
    to.number(inputs.length);
    for (const { length } of inputs) to.number(length);
    for (const input of inputs) to.slice(input, stored, input.length);
    to.slice(output, dtype, inputs.length);
  },

  matmul(to, { kernel, a, b, output, batch, m, n, k, strideA, strideB, epilogue }) {
    const { dtype, transposeA, transposeB } = kernel.spec;
    to.flag(dtype === "f64");
    to.flag(transposeA);
    to.flag(transposeB);
    to.list([batch, m, n, k, strideA, strideB]);
    to.slice(a, dtype, batch === 0 ? 0 : (batch - 1) * strideA + m * k);
    to.slice(b, dtype, batch === 0 ? 0 : (batch - 1) * strideB + k * n);
    to.slice(output, dtype, batch * m * n);
    const { codeAddress } = kernel as CpuKernel<"matmul">;
    to.flag(codeAddress !== undefined);
    if (codeAddress === undefined) return;
    const { operands, strides, scalars, product } = epilogue!;
    checkCount("scalars", scalars.length, kernel.spec.epilogue!.scalars.length);
    checkCount("operands", operands.length + 1, kernel.spec.epilogue!.buffers.length);
    to.number(codeAddress);
    to.number(scalars.length);
    to.list(scalars);
    operands.forEach((operand, i) => {
      to.slice(operand, dtype, reach([batch, m, n], strides[i]!).after);
      to.list(strides[i]!);
    });
    to.flag(product !== undefined);
    if (product) to.slice(product, dtype, batch * m * n);
  },

  copy(to, { kernel, source, target, shape, sourceStrides, targetStrides }) {
    const { from, to: into } = kernel.spec;
    const walk: Walk = mergeDimensions({ shape, sourceStrides, targetStrides });
    to.number(DTYPE_NUMBER[from]);
    to.number(DTYPE_NUMBER[into]);
    to.number(walk.shape.length);
    to.list(walk.shape);
    to.list(walk.sourceStrides);
    to.list(walk.targetStrides);
    const read = reach(walk.shape, walk.sourceStrides);
    to.slice(source, from, read.after, read.before);
    to.slice(target, into, reach(walk.shape, walk.targetStrides).after);
  },

  gather(to, { kernel, table, indices, output, rows, width, count }) {
    const { dtype } = kernel.spec;
    to.flag(dtype === "f64");
    to.list([rows, width, count]);
    to.slice(table, dtype, rows * width);
    to.slice(indices, "i32", count);
    to.slice(output, dtype, count * width);
  },

  scatterAdd(to, { kernel, source, indices, output, rows, width, count }) {
    const { dtype } = kernel.spec;
    to.flag(dtype === "f64");
    to.list([rows, width, count]);
    to.slice(source, dtype, count * width);
    to.slice(indices, "i32", count);
    to.slice(output, dtype, rows * width);
  },

  rows(to, { kernel, inputs, labels, outputs, scalars, rows, length, ignoreIndex }) {
    const { rowsNumber, spec } = kernel as CpuKernel<"rows">;
    const { dtype, program } = spec;
    const needed = { matrix: rows * length, vector: length, columns: length, number: rows };
    to.flag(dtype === "f64");
    to.number(rowsNumber!);
    to.list([rows, length, ignoreIndex]);
    checkCount("scalars", scalars.length, program.scalars.length);
    to.list(scalars);
    if (program.labels) to.slice(labels!, "i32", rows);
    program.inputs.forEach(({ kind }, slot) => {
      to.slice(inputs[slot]!, dtype, needed[kind]);
    });
    program.outputs.forEach(({ kind }, slot) => {
      to.slice(outputs[slot]!, dtype, needed[kind]);
    });
  },

  unfold(to, { kernel, input, output, window }) {
    const { dtype } = kernel.spec;
    to.flag(dtype === "f64");
    const { plane, columns } = writeWindow(to, window);
    to.slice(input, dtype, plane);
    to.slice(output, dtype, columns);
  },

  fold(to, { kernel, input, output, window }) {
    const { dtype } = kernel.spec;
    to.flag(dtype === "f64");
    const { plane, columns } = writeWindow(to, window);
    to.slice(input, dtype, columns);
    to.slice(output, dtype, plane);
  },

  maxPool2d(to, { kernel, input, output, indices, window }) {
    const { dtype } = kernel.spec;
    to.flag(dtype === "f64");
    const { plane, outPlane } = writeWindow(to, window);
    to.slice(input, dtype, plane);
    to.slice(output, dtype, outPlane);
    to.slice(indices, "i32", outPlane);
  },

  maxPool2dGrad(to, { kernel, gradient, indices, output, window }) {
    const { dtype } = kernel.spec;
    to.flag(dtype === "f64");
    const { plane, outPlane } = writeWindow(to, window);
    to.slice(gradient, dtype, outPlane);
    to.slice(indices, "i32", outPlane);
    to.slice(output, dtype, plane);
  },

  attention(to, launch) {
    writeAttention(to, launch, [launch.query, launch.key, launch.value, launch.output]);
  },

  attentionGrad(to, launch) {
    const { query, key, value, gradient, queryGradient, keyGradient, valueGradient } = launch;
    writeAttention(to, launch, [query, key, value, gradient, queryGradient, keyGradient, valueGradient]);
  },

  batchNorm(to, { kernel, input, weight, bias, output, mean, variance, outer, channels, inner, eps }) {
    const { dtype } = kernel.spec;
    to.flag(dtype === "f64");
    to.list([outer, channels, inner, eps]);
    slices(to, dtype, outer * channels * inner, input);
    slices(to, dtype, channels, weight, bias);
    slices(to, dtype, outer * channels * inner, output);
    slices(to, dtype, channels, mean, variance);
  },

  batchNormGrad(to, launch) {
    const { input, weight, mean, variance, gradient, inputGradient, weightGradient, biasGradient } = launch;
    const { outer, channels, inner, eps } = launch;
    const { dtype } = launch.kernel.spec;
    to.flag(dtype === "f64");
    to.list([outer, channels, inner, eps]);
    slices(to, dtype, outer * channels * inner, input);
    slices(to, dtype, channels, weight, mean, variance);
    slices(to, dtype, outer * channels * inner, gradient, inputGradient);
    slices(to, dtype, channels, weightGradient, biasGradient);
  },

  lstm(to, { kernel, inputs, weight, bias, hidden, cell, results, cells, gates, ...sizes }) {
    const { dtype } = kernel.spec;
    to.flag(dtype === "f64");
    const { state, all } = writeSequence(to, sizes);
    const { width } = sizes;
    to.slice(inputs, dtype, 4 * all);
    to.slice(weight, dtype, 4 * width * width);
    to.slice(bias, dtype, 4 * width);
    slices(to, dtype, state, hidden, cell);
    slices(to, dtype, all, results, cells);
    to.slice(gates, dtype, 4 * all);
  },

  lstmGrad(to, { kernel, weight, cell, cells, gates, gradient, cellGradient, ...rest }) {
    const { inputsGradient, firstHiddenGradient, firstCellGradient, ...sizes } = rest;
    const { dtype } = kernel.spec;
    to.flag(dtype === "f64");
    const { state, all } = writeSequence(to, sizes);
    to.slice(weight, dtype, 4 * sizes.width * sizes.width);
    to.slice(cell, dtype, state);
    to.slice(cells, dtype, all);
    to.slice(gates, dtype, 4 * all);
    to.slice(gradient, dtype, all);
    to.slice(cellGradient, dtype, state);
    to.slice(inputsGradient, dtype, 4 * all);
    slices(to, dtype, state, firstHiddenGradient, firstCellGradient);
  },
};

/** How a buffer of a program lies in memory (native/cpu/src/kernels/program.cc). */
const LAYOUT = { dense: 0, strided: 1, stored: 2 } as const;

type Tensors = Launch<"rule">["tensors"];

function formatsOf({ stored, rule, dtype }: Spec<"rule">): StoredFormats {
  return stored ?? rule.buffers.map(() => dtype as StoredFormats[number]);
}

function writeFormats(to: CommandWriter, spec: Spec<"rule">): void {
  const formats = formatsOf(spec);
  to.number(formats.length);
  formats.forEach((format, slot) => {
    to.number(format === spec.dtype ? 0 : FORMAT_NUMBER[format]);
    to.flag(isWritten(spec.rule, slot));
  });
}

function writeTensors(to: CommandWriter, tensors: Tensors, { ruleNumber, spec }: CpuKernel<"rule">): void {
  const built = ruleNumber !== undefined;
  const formats = formatsOf(spec);
  writeStarts(to, tensors);
  for (const slices of tensors) {
    checkCount("buffers", slices.length, formats.length);
    slices.forEach((slice, slot) => {
      const format = formats[slot]!;
      to.slice(slice, isRandom(format) ? withoutDraws(format) : format, slices[0]!.length);
      if (built) return;
      const isStored = format !== spec.dtype;
      to.number(isStored ? LAYOUT.stored : LAYOUT.dense);
      if (isStored) to.list([FORMAT_NUMBER[format], Number(isWritten(spec.rule, slot))]);
      if (isRandom(format)) to.number(slice.place!);
    });
    if (built && isRandom(spec.stored?.[0])) to.number(slices[0]!.place!);
  }
}

/** Mirrors, which come after the rule's buffers, are. */
function isWritten({ program }: Rule, slot: number): boolean {
  return slot >= program.buffers.length || program.outputs.some((output) => output.slot === slot);
}

function slices(to: CommandWriter, dtype: "f32" | "f64", needed: number, ...all: readonly Slice[]): void {
  for (const slice of all) to.slice(slice, dtype, needed);
}

/** How many tensors there are, how many elements lie before each of them, and how many in all. */
function writeStarts(to: CommandWriter, tensors: readonly (readonly Slice[])[]): void {
  to.number(tensors.length);
  let start = 0;
  to.number(start);
  for (const slices of tensors) {
    start += slices[0]!.length;
    to.number(start);
  }
}

/** Elements of all input planes, of all output planes, and of all columns. */
function writeWindow(to: CommandWriter, window: Window2d): { plane: number; outPlane: number; columns: number } {
  const { batch, channels, height, width, outHeight, outWidth, kernel, stride, padding, dilation } = window;
  const planes = batch * channels;
  to.list([planes, height, width, outHeight, outWidth]);
  to.list(kernel);
  to.list(stride);
  to.list(padding);
  to.list(dilation);
  const outPlane = planes * outHeight * outWidth;
  return { plane: planes * height * width, outPlane, columns: outPlane * kernel[0] * kernel[1] };
}

function writeAttention(
  to: CommandWriter,
  launch: Launch<"attention"> | Launch<"attentionGrad">,
  operands: readonly Slice[],
): void {
  const { batch, queries, keys, width, columns, scale, causal, heads, strides } = launch;
  const { dtype } = launch.kernel.spec;
  to.flag(dtype === "f64");
  to.list([batch, queries, keys, width, columns, heads]);
  for (const walk of strides) to.list(walk);
  to.number(scale);
  to.flag(causal);
  const shapes = headShapes(launch);
  operands.forEach((operand, i) => {
    const walk = reach([batch / heads, heads, ...shapes[i]!], [...strides[i]!, 1]);
    to.slice(operand, dtype, walk.after);
  });
}

/** Elements of one state, and of the states of all places. */
function writeSequence(to: CommandWriter, { length, batch, width, reverse }: SequenceSizes) {
  to.list([length, batch, width]);
  to.flag(reverse);
  return { state: batch * width, all: length * batch * width };
}

function checkCount(what: string, actual: number, expected: number): void {
  if (actual !== expected) throw bug(`the kernel takes ${expected} ${what}, got ${actual}.`);
}

/** Elementwise programs that feed others become part of them: one loop, and no memory in between. */
import type { Slice } from "../../backend/memory";
import type { Kernel, Launch } from "../../backend/spec";
import { Expression } from "../../rule/expression";
import { type Program, trace } from "../../rule/program";
import type { MapDType } from "../../values/dtype";
import { denseStrides, sizeOf } from "../../values/shape";
import { isDense, mergeDimensions } from "../../values/strides";
import { expressionOf } from "./expression-of";
import { isSameSlice, refined, refinedStrides, type Walk } from "./layout";
import type { Uses } from "./uses";

/** Beyond these a loop no longer fits into registers and caches. */
const MOST_NODES = 96;
const MOST_BUFFERS = 8;
/** Operations that are computed again for each reader rather than stored. */
const CHEAP = 2;

export type MapKernels = (program: Program, dtype: MapDType) => Kernel<"map">;

export function fuseMaps(uses: Uses, kernels: MapKernels): void {
  // From the end: a chain then becomes one program, whose parts are no longer read by others.
  for (let index = uses.length - 1; index >= 0; index--) {
    const producer = uses.launch("map", index);
    if (producer === undefined) continue;
    const { memory } = producer.output;
    const readers = uses.readers(memory);
    if (!uses.temporaries.has(memory) || uses.writers(memory).length > 1 || readers.length === 0) continue;
    const ops = producer.kernel.spec.program.nodes.filter(({ args }) => args.length > 0).length;
    if (readers.length > 1 && ops > CHEAP) continue;
    const isFree = readers.every(
      (reader) =>
        !uses.hasHostBetween(index, reader) &&
        producer.inputs.every((input) => !uses.isWrittenBetween(input.memory, index, reader)),
    );
    if (!isFree) continue;
    const fused = readers.flatMap((reader) => {
      const consumer = uses.launch("map", reader);
      return (consumer && fuse(producer, consumer, kernels)) ?? [];
    });
    if (fused.length < readers.length) continue;
    readers.forEach((reader, i) => {
      uses.replace(reader, { kind: "launch", launch: fused[i]!, scalarSource: undefined });
    });
    uses.replace(index, null);
  }
}

interface Operand {
  readonly slice: Slice;
  readonly strides: readonly number[];
}

/** The consumer with the producer's program in place of what it reads of it; undefined where they walk otherwise. */
function fuse(producer: Launch<"map">, consumer: Launch<"map">, kernels: MapKernels): Launch<"map"> | undefined {
  const { dtype, program } = consumer.kernel.spec;
  if (producer.kernel.spec.dtype !== dtype) return undefined;
  const reads = consumer.inputs.map(({ memory }) => memory === producer.output.memory);
  const joint = jointWalk(producer, consumer, reads);
  if (joint === undefined) return undefined;
  const operands: Operand[] = [];
  const symbolOf = (slice: Slice, strides: readonly number[]): Expression => {
    let slot = operands.findIndex(
      (known) => isSameSlice(known.slice, slice) && String(known.strides) === String(strides),
    );
    if (slot < 0) slot = operands.push({ slice, strides }) - 1;
    return new Expression("buffer", [], slot);
  };
  const { scalars } = consumer;
  const scalar = (first: number) => (slot: number) => new Expression("scalar", [], first + slot);
  const inner = expressionOf(
    producer.kernel.spec.program,
    producer.inputs.map((input, i) => symbolOf(input, joint.producer[i]!)),
    scalar(scalars.length),
  );
  const outer = expressionOf(
    program,
    consumer.inputs.map((input, i) => (reads[i] ? inner : symbolOf(input, joint.consumer[i]!))),
    scalar(0),
  );
  // In place an input is read where the output is written. Maps read dense or broadcast tensors: one of the output's length is in its order.
  const overwritten = operands.filter(({ slice }) => slice.memory === consumer.output.memory);
  if (overwritten.some(({ slice }) => !isSameSlice(slice, consumer.output))) return undefined;
  const names = [...scalars, ...producer.scalars].map((_, i) => `s${i}`);
  const made = trace(
    operands.map((_, i) => `b${i}`),
    names,
    [{ slot: 0, expression: outer }],
  );
  if (made.nodes.length > MOST_NODES || operands.length > MOST_BUFFERS) return undefined;
  const all = [...operands.map(({ strides }) => strides), denseStrides(joint.shape)];
  const merged = mergeDimensions(joint.shape, all);
  return {
    ...consumer,
    kernel: kernels(made, dtype),
    inputs: operands.map(({ slice }) => slice),
    scalars: [...scalars, ...producer.scalars],
    shape: merged.shape,
    strides: merged.strides.slice(0, operands.length),
  };
}

/** Strides of both in one loop. */
function jointWalk(
  producer: Launch<"map">,
  consumer: Launch<"map">,
  reads: readonly boolean[],
): { shape: readonly number[]; producer: Walk["strides"]; consumer: Walk["strides"] } | undefined {
  const isOne = sizeOf(producer.shape) === 1;
  if (isOne) {
    const still = consumer.shape.map(() => 0);
    return { shape: consumer.shape, producer: producer.inputs.map(() => still), consumer: consumer.strides };
  }
  const walksAlike = reads.every(
    (isRead, i) =>
      !isRead || (isSameSlice(consumer.inputs[i]!, producer.output) && isDense(consumer.shape, consumer.strides[i]!)),
  );
  if (!walksAlike || sizeOf(consumer.shape) !== sizeOf(producer.shape) || sizeOf(consumer.shape) === 0)
    return undefined;
  const shape = refined(producer.shape, consumer.shape);
  if (shape === undefined) return undefined;
  return {
    shape,
    producer: producer.strides.map((strides) => refinedStrides(producer.shape, strides, shape)),
    consumer: consumer.strides.map((strides) => refinedStrides(consumer.shape, strides, shape)),
  };
}

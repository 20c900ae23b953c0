/** An elementwise program that follows a matrix product becomes its epilogue. */
import type { Slice } from "../../backend/memory";
import type { Kernel, Launch, Spec } from "../../backend/spec";
import { Expression, isTranscendental } from "../../rule/expression";
import { trace } from "../../rule/program";
import { sizeOf } from "../../values/shape";
import { isDense } from "../../values/strides";
import { expressionOf } from "./expression-of";
import { isSameSlice, refined, refinedStrides } from "./layout";
import type { Uses } from "./uses";

export type ProductKernels = (spec: Spec<"matmul">) => Kernel<"matmul">;

/** Smaller products are faster with a loop of their own. */
const LEAST_ELEMENTS = 512;

export function fuseEpilogues(uses: Uses, kernels: ProductKernels): void {
  for (let index = 0; index < uses.length; index++) {
    const product = uses.launch("matmul", index);
    if (
      product === undefined ||
      product.epilogue !== undefined ||
      product.batch === 0 ||
      product.m * product.n < LEAST_ELEMENTS
    )
      continue;
    const { memory } = product.output;
    const readers = uses.readers(memory);
    const [first] = readers;
    if (!uses.temporaries.has(memory) || uses.writers(memory).length > 1 || first === undefined) continue;
    const consumer = uses.launch("map", first);
    if (consumer === undefined || uses.hasHostBetween(index, first)) continue;
    // The product moves to where its reader is.
    if ([product.a, product.b].some((input) => uses.isWrittenBetween(input.memory, index, first))) continue;
    const launch = fuse(product, consumer, kernels, readers.length > 1);
    if (launch === undefined) continue;
    uses.replace(first, { kind: "launch", launch, scalarSource: undefined });
    uses.replace(index, null);
  }
}

/** The product with the program that reads it; undefined where that walks otherwise. */
function fuse(
  product: Launch<"matmul">,
  consumer: Launch<"map">,
  kernels: ProductKernels,
  isKept: boolean,
): Launch<"matmul"> | undefined {
  const { spec } = product.kernel;
  const { program, dtype } = consumer.kernel.spec;
  // Functions of float64 run on one thread on some devices, and the product would, too.
  const isSlow = dtype === "f64" && program.nodes.some(({ op }) => isTranscendental(op));
  if (dtype !== spec.dtype || isSlow) return undefined;
  const { batch, m, n } = product;
  const shape = refined([batch, m, n], consumer.shape);
  if (shape === undefined || sizeOf(consumer.shape) !== batch * m * n) return undefined;
  const operands: { slice: Slice; strides: readonly [number, number, number] }[] = [];
  const buffers: Expression[] = [];
  for (const [i, slice] of consumer.inputs.entries()) {
    const strides = consumer.strides[i]!;
    if (slice.memory === product.output.memory) {
      if (!isSameSlice(slice, product.output) || !isDense(consumer.shape, strides)) return undefined;
      buffers.push(new Expression("buffer", [], 0));
      continue;
    }
    const walk = inThree(shape, refinedStrides(consumer.shape, strides, shape), [batch, m, n]);
    const isOverwritten = slice.memory === consumer.output.memory;
    if (walk === undefined || (isOverwritten && !isDense([batch, m, n], walk))) return undefined;
    operands.push({ slice, strides: walk });
    buffers.push(new Expression("buffer", [], operands.length));
  }
  if ([product.a, product.b].some(({ memory }) => memory === consumer.output.memory)) return undefined;
  const expression = expressionOf(program, buffers, (slot) => new Expression("scalar", [], slot));
  const names = ["product", ...operands.map((_, i) => `b${i}`)];
  const epilogue = trace(names, program.scalars, [{ slot: 0, expression }]);
  return {
    ...product,
    kernel: kernels({ ...spec, epilogue }),
    output: consumer.output,
    epilogue: {
      operands: operands.map(({ slice }) => slice),
      strides: operands.map(({ strides }) => strides),
      scalars: consumer.scalars,
      ...(isKept && { product: product.output }),
    },
  };
}

/** Strides by batch, row and column; undefined where there are more. */
function inThree(
  shape: readonly number[],
  strides: readonly number[],
  extents: readonly [number, number, number],
): [number, number, number] | undefined {
  let axis = shape.length - 1;
  const found: number[] = [];
  for (const extent of extents.toReversed()) {
    let covered = 1;
    let stride = 0;
    while (covered < extent) {
      if (covered === 1) stride = strides[axis]!;
      else if (strides[axis] !== stride * covered) return undefined;
      covered *= shape[axis--]!;
    }
    found.unshift(stride);
  }
  return found as [number, number, number];
}

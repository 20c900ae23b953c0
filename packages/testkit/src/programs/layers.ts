/** Layers as ops: `options.layer` is called with the first operand; the others are its weights. */
import { concat, type Device, type DType, type Generator, type Tensor } from "@opt/core";
import { sizeOf } from "./numbers";
import { type OpKind, promote } from "./op-kind";
import type { Layer, Shape } from "./program";

/** What programs do with a layer. */
export interface LayerModule {
  // biome-ignore lint/suspicious/noExplicitAny: attention takes more than x, recurrent layers give more than y
  forward(...operands: any[]): any;
  train(training: boolean): unknown;
  freeze(): unknown;
  onForward(hook: (layer: unknown, inputs: readonly unknown[], output: Tensor) => Tensor): unknown;
  parameters(): Iterable<Tensor>;
}

// biome-ignore lint/suspicious/noExplicitAny: sizes and options come from the program
export type LayerClasses = Readonly<Record<string, new (...args: any[]) => LayerModule>>;

export function makeLayer(
  classes: LayerClasses,
  { kind, sizes, options }: Layer,
  { generator, ...place }: { readonly dtype: DType; readonly device: Device; readonly generator: Generator },
): LayerModule {
  return new classes[kind]!(...sizes, kind === "Dropout" ? { generator } : { ...options, ...place });
}

const forward: OpKind["run"] = ([x], { layer }) => (layer as LayerModule).forward(x);

/** Its results, without the states at the end. */
const results: OpKind["run"] = ([x], { layer }) => {
  const [output, last] = (layer as LayerModule).forward(x) as [Tensor, Tensor | Tensor[]];
  for (const state of [last].flat()) state.dispose();
  return output;
};

/** Of weights of its operand's dtype. */
const sameAs: OpKind["spec"] = ([x]) => x!;

/** `hidden`: of all directions together; `lasts`: elements of the states at the end, which come behind the results in one row. */
const recurrent: OpKind = {
  run(operands, options) {
    if (options.lasts === undefined) return results(operands, options);
    const [output, last] = (options.layer as LayerModule).forward(operands[0]) as [Tensor, Tensor | Tensor[]];
    const all = [output, ...[last].flat()];
    const rows = all.map((one) => one.reshape([-1]));
    const joined = concat(rows);
    for (const one of [...all, ...rows]) one.dispose();
    return joined;
  },
  spec([x], { hidden, lasts }) {
    const shape = [...x!.shape.slice(0, -1), hidden as number];
    return { shape: lasts === undefined ? shape : [sizeOf(shape) + (lasts as number)], dtype: x!.dtype };
  },
};

/** A function of `@opt/nn`. */
type NetworkFunction = (...operands: unknown[]) => Tensor;

const loss: OpKind = {
  run: (operands, { call }) => (call as NetworkFunction)(...operands),
  spec: (tensors) => ({ shape: [], dtype: tensors[0]!.dtype }),
};

const extent = (size: number, window: number, { stride = 1, padding = 0 }: { stride?: number; padding?: number }) =>
  Math.floor((size + 2 * padding - window) / stride) + 1;

export const LAYERS: Readonly<Record<string, OpKind>> = {
  Linear: {
    run: forward,
    spec: ([x, weight]) => ({
      shape: [...x!.shape.slice(0, -1), weight!.shape[0]!],
      dtype: promote(x!.dtype, weight!.dtype),
    }),
  },
  Conv2d: {
    run: forward,
    spec: ([x, weight], window) => {
      const [batch, , height, width] = x!.shape as [number, number, number, number];
      const [out, , h, w] = weight!.shape as [number, number, number, number];
      const shape: Shape = [batch, out, extent(height, h, window), extent(width, w, window)];
      return { shape, dtype: promote(x!.dtype, weight!.dtype) };
    },
  },
  Conv1d: {
    run: forward,
    spec: ([x, weight], window) => ({
      shape: [x!.shape[0]!, weight!.shape[0]!, extent(x!.shape[2]!, 2, window)],
      dtype: x!.dtype,
    }),
  },
  ConvTranspose2d: {
    run: forward,
    spec: ([x, weight], { stride }) => {
      const [batch, , height, width] = x!.shape as [number, number, number, number];
      const larger = (size: number) => (size - 1) * (stride as number) + 2;
      return { shape: [batch, weight!.shape[1]!, larger(height), larger(width)], dtype: x!.dtype };
    },
  },
  BatchNorm1d: { run: forward, spec: sameAs },
  BatchNorm2d: { run: forward, spec: sameAs },
  GroupNorm: { run: forward, spec: sameAs },
  RMSNorm: { run: forward, spec: sameAs },
  RNN: recurrent,
  LSTM: recurrent,
  GRU: recurrent,
  /** Of its operand to itself. */
  MultiheadAttention: {
    run: ([x], { layer, isCausal }) => (layer as LayerModule).forward(x, x, x, { needWeights: false, isCausal })[0],
    spec: sameAs,
  },
  /** Of its first operand to the second one. */
  CrossAttention: {
    run: ([query, memory], { layer, isCausal, needWeights }) => {
      const [output, weights] = (layer as LayerModule).forward(query, memory, memory, { needWeights, isCausal });
      weights?.dispose();
      return output;
    },
    spec: sameAs,
  },
  scaledDotProductAttention: {
    run: ([query, key, value, attnMask], { call, isCausal }) =>
      (call as NetworkFunction)(query, key, value, { isCausal, ...(attnMask !== undefined && { attnMask }) }),
    spec: ([query, , value]) => ({ shape: query!.shape.with(-1, value!.shape.at(-1)!), dtype: query!.dtype }),
  },
  LayerNorm: {
    run: forward,
    spec: (tensors) => ({ shape: tensors[0]!.shape, dtype: tensors.map(({ dtype }) => dtype).reduce(promote) }),
  },
  Embedding: {
    run: forward,
    spec: ([indices, weight]) => ({ shape: [...indices!.shape, weight!.shape[1]!], dtype: weight!.dtype }),
  },
  ...Object.fromEntries(["l1Loss", "smoothL1Loss", "meanCrossEntropy"].map((name) => [name, loss])),
  interpolate: {
    run: ([x], { call, scaleFactor }) => (call as NetworkFunction)(x, { scaleFactor, mode: "linear" }),
    spec: ([x], { scaleFactor }) => ({
      shape: x!.shape.with(-1, Math.floor(x!.shape.at(-1)! * (scaleFactor as number))),
      dtype: x!.dtype,
    }),
  },
  /** Its operand's memory in evaluation. */
  Dropout: { run: forward, spec: ([x]) => x!, view: true },
};

/** Layers as ops: `options.layer` is called with the first operand; the others are its weights. */
import type { Device, DType, Generator, Tensor } from "@opt/core";
import { type OpKind, promote } from "./op-kind";
import type { Layer, Shape } from "./program";

/** What programs do with a layer. */
export interface LayerModule {
  forward(x: Tensor): Tensor;
  train(training: boolean): unknown;
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

const forward: OpKind["run"] = ([x], { layer }) => (layer as LayerModule).forward(x as Tensor);

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
  LayerNorm: {
    run: forward,
    spec: (tensors) => ({ shape: tensors[0]!.shape, dtype: tensors.map(({ dtype }) => dtype).reduce(promote) }),
  },
  Embedding: {
    run: forward,
    spec: ([indices, weight]) => ({ shape: [...indices!.shape, weight!.shape[1]!], dtype: weight!.dtype }),
    exact: true,
  },
  /** Its operand's memory in evaluation. */
  Dropout: { run: forward, spec: ([x]) => x!, exact: true, view: true },
};

/** Options of every layer with weights: their device, and how they begin. */
import { type Device, type DType, full, type Generator, keep, type Shape, type Tensor, zeros } from "@opt/core";

export interface LayerOptions {
  readonly dtype?: DType;
  readonly device?: Device | string;
  /** Draws the first weights; by default the generator that `manualSeed` seeds. */
  readonly generator?: Generator;
}

/** For `checkOptions`. */
export const LAYER_OPTIONS = { dtype: "string", device: ["string", "object"], generator: "object" } as const;

/** A new parameter of zeros, to be initialised. */
export function weightOf(shape: Shape, { dtype, device }: LayerOptions): Tensor {
  return keep(zeros(shape, { dtype, device, requiresGrad: true }));
}

/** A new buffer: part of the state, but nothing that is trained. */
export function bufferOf(shape: Shape, value: number, options: Pick<LayerOptions, "dtype" | "device">): Tensor {
  return keep(full(shape, value, options));
}

/** What initialisers take of a layer's options. */
export function drawnBy({ generator }: LayerOptions): Pick<LayerOptions, "generator"> {
  return { generator };
}

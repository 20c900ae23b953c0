/** The steps of a compiled function, as plain data: what passes rewrite and runs repeat. */
import { memoriesOf } from "../backend/launches";
import type { Memory, Slice } from "../backend/memory";
import type { Launch } from "../backend/spec";
import type { ScalarSource } from "../device/scalar-source";
import type { Tensor } from "../tensor/tensor";
import type { DType } from "../values/dtype";
import type { Shape } from "../values/shape";

/** A tensor of the traced run: where it is in the memory of the trace. */
export interface View extends Slice {
  readonly shape: Shape;
  readonly dtype: DType;
}

/** A gradient as the function leaves it: a view, or a tensor that was there before; null: cleared. */
export type FinalGradient = View | Tensor | null;

/** What happened, in order. */
export type Step =
  | { readonly kind: "launch"; readonly launch: Launch; readonly scalarSource: ScalarSource | undefined }
  | {
      /** Host data: constants made inside, or numbers that are drawn in each run. */
      readonly kind: "write";
      readonly slice: Slice;
      readonly isConstant: boolean;
      bytes(): Uint8Array;
    }
  | {
      readonly kind: "host";
      readonly views: readonly View[];
      /** Gradients that are others than at the last host code, or than at the start. */
      readonly gradients: ReadonlyMap<Tensor, FinalGradient>;
      run(...tensors: Tensor[]): void;
    };

/** Memory of launches and host data. */
export const usedBy = (step: Step): Iterable<Memory> =>
  step.kind === "launch" ? memoriesOf(step.launch) : step.kind === "write" ? [step.slice.memory] : [];

/** A step where another trace has another one, or none. */
export interface Difference {
  readonly index: number;
  readonly step: Step | undefined;
  readonly other: Step | undefined;
  /** Of the program. */
  readonly line: string;
}

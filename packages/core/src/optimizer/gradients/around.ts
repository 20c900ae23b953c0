/** What a step does around its rule, in PyTorch's order: unscale, clip by norm, clip by value, climb, penalty; a guard keeps everything where its scalar is above 0. */
import type { Scalar } from "../../backend/memory";
import { cast } from "../../ops";
import { rewritten } from "../../rule/rewrite";
import type { Rewrite, Rule } from "../../rule/rule";
import type { Tensor } from "../../tensor/tensor";
import type { ComputeDType } from "../../values/dtype";
import type { Regularizer } from "./regularizer";

/** Limits of gradients; both may be given. */
export interface ClipOptions {
  /** Of the 2-norm of all gradients of the optimizer's groups that have this limit, as `clipGradNorm`. */
  norm?: number;
  /** Of each element's magnitude, as `clipGradValue`. */
  value?: number;
}

/** What the device says of a step: tensors of one element. */
export interface Around {
  /** 1 / loss scale. */
  readonly unscale?: Tensor | undefined;
  /** By which the norm is clipped. */
  readonly factor?: Tensor | undefined;
  /** Above 0 where the step is to be skipped. */
  readonly skip?: Tensor | undefined;
  /** The same, read by the host. */
  skipped?(): boolean;
}

/** One of them, with its scalar. */
export interface Step {
  readonly rewrite: Rewrite;
  readonly by: Scalar | Tensor;
}

/** What a step does around the rule of parameters with this penalty. */
export function stepsAround(
  { unscale, factor, skip }: Around,
  { clip, maximize }: { clip?: ClipOptions | null; maximize: boolean },
  penalty: Regularizer | null,
): readonly Step[] {
  const steps: Step[] = [];
  if (unscale) steps.push({ rewrite: "scale", by: unscale });
  if (factor) steps.push({ rewrite: "scale", by: factor });
  if (clip?.value !== undefined) steps.push({ rewrite: "clamp", by: clip.value });
  if (maximize) steps.push({ rewrite: "scale", by: -1 });
  // After it: the penalty pulls towards zero when the rule climbs, too.
  if (penalty) steps.push({ rewrite: penalty.kind, by: penalty.coefficient });
  if (skip) steps.push({ rewrite: "guard", by: skip });
  return steps;
}

/** The rule with these steps around it. */
export function ruleAround(rule: Rule, steps: readonly Step[]): Rule {
  if (steps.length === 0) return rule;
  return rewritten(
    rule,
    steps.map(({ rewrite }) => rewrite),
  );
}

/** The scalars of these steps, which come after the rule's own. */
export function scalarsAround(steps: readonly Step[], dtype: ComputeDType): readonly Scalar[] {
  return steps.map(({ by }) => (typeof by === "object" && "dtype" in by ? cast(by, dtype).memorySlice() : by));
}

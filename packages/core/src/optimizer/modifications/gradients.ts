/** The modifications of gradients: `centralize` and `mars`. */
import { full } from "../../create";
import { cast, elementwise, mean } from "../../ops";
import { inWholes, partsOfWholes } from "../../placement/wholes";
import { rewrittenGradient } from "../../rule/rewrite";
import type { Tensor } from "../../tensor/tensor";
import { computeDType } from "../../values/dtype";
import type { BaseOptions, GroupOptions } from "../algorithm";
import { norms } from "../gradients/norm";
import { type Around, rewritesOf } from "../plan";
import type { PreparedParameter } from "../prepare";
import { LAST_GRAD, type Slot } from "../state/state";
import { beta1Of } from "./check";

/** State that a step renews, and what it becomes. */
export type Renewed = readonly [state: Tensor, next: Tensor];

export interface ModifiedGradients {
  /** With the gradients that rules see: everything that rewrites do to them is done. */
  readonly parameters: readonly PreparedParameter[];
  readonly renewed: readonly (readonly [Slot, Renewed])[];
}

/** The gradients of a group's parameters after `centralize` and `mars`. */
export function modifiedGradients<Options extends BaseOptions>(
  options: Options & GroupOptions,
  parameters: readonly PreparedParameter[],
  around: Around,
): ModifiedGradients {
  if (parameters.length === 0) return { parameters, renewed: [] };
  const placements = parameters.map(({ slot }) => slot.param.placement);
  let gradients = parameters.map(({ gradient, penalty, slot }) => {
    const dtype = computeDType(slot.param.dtype);
    const rewrites = rewritesOf(options, penalty, { ...around, skip: undefined });
    return rewrites.reduce(
      (grad, { rewrite, by }) => {
        const scalar = typeof by === "number" ? full([], by, { dtype, device: gradient.device }) : cast(by, dtype);
        return rewrittenGradient(rewrite, grad, cast(slot.param, dtype), scalar);
      },
      cast(gradient, dtype),
    );
  });
  if (options.centralize) {
    gradients = inWholes(gradients, placements, (indices, wholes) =>
      partsOfWholes(
        wholes.map(centralized),
        indices.map((i) => placements[i]!),
      ),
    ).flat();
  }
  const renewed: (readonly [Slot, Renewed])[] = [];
  if (options.mars) {
    const beta1 = beta1Of(options)!;
    const factor = (options.mars.gamma * beta1) / (1 - beta1);
    const changed = gradients.map((gradient, i) => {
      const last = parameters[i]!.slot.state!.tensors.get(LAST_GRAD)!;
      renewed.push([parameters[i]!.slot, [last, gradient]]);
      return elementwise("fma", [elementwise("sub", [gradient, last]), factor, gradient]);
    });
    for (const [i, gradient] of changed.entries()) gradient.placement = placements[i]!;
    const each = norms(changed);
    gradients = changed.map((gradient, i) => {
      const norm = cast(each.slice(i, i + 1), gradient.dtype);
      return elementwise("div", [gradient, norm.maximum(1).reshape([])]);
    });
  }
  return {
    parameters: parameters.map((each, i) => {
      const gradient = cast(gradients[i]!, each.slot.param.dtype);
      return { ...each, gradient, penalty: null };
    }),
    renewed,
  };
}

/** Less the mean of each row: of all but the first dimension. */
function centralized(gradient: Tensor): Tensor {
  const { shape } = gradient;
  if (shape.length < 2) return gradient;
  const axes = shape.map((_, i) => i).slice(1);
  return elementwise("sub", [gradient, mean(gradient, axes, true)]);
}

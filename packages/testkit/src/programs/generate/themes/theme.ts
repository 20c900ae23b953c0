/** What a theme of small programs gives, and the losses and gradients that themes share. */
import { sizeOf } from "../../numbers";
import type { Id, Statement } from "../../program";
import type { Draft, Value } from "../draft";

export interface Theme {
  readonly results?: readonly Id[];
  /** Done once before the first round. */
  readonly prelude?: readonly Statement[];
  /** Done before one of the later rounds. */
  readonly between?: readonly Statement[];
  readonly isWithoutSteps?: boolean;
  /** Optimizers step in calls in which this argument is true. */
  readonly stepsWhen?: Id;
  /** Numbers that the body finds in variables outside, which are others in each call. */
  readonly outside?: readonly Id[];
  /** The last statement is rejected. */
  readonly isOver?: boolean;
}

export function sumOf(draft: Draft, x: Value): Value {
  return draft.op("sum", [x], { bound: x.bound * Math.max(sizeOf(x.shape), 1) });
}

/** A loss whose elements weigh differently, so that none can hide. */
export function weighed(draft: Draft, x: Value): Value {
  const weights = draft.leaf("data", x.shape, x.dtype, draft.fill("grid"));
  return sumOf(draft, draft.op("mul", [x, weights], { bound: 4 * x.bound }));
}

export function backward(draft: Draft, loss: Value, retain = false): void {
  draft.statements.push({ do: "backward", of: loss.id, gradient: null, ...(retain && { retain }) });
}

/** The gradient of a loss by a value, as a value. */
export function slope(draft: Draft, loss: Value, by: Value): Value {
  const id = draft.newId("t");
  draft.statements.push({ do: "grad", id, of: loss.id, by: by.id });
  const value = { ...by, id, root: id, bound: 100, certain: false, requiresGrad: true };
  draft.values.push(value);
  return value;
}

/** The launches of every elementwise op by its name: of the ops of rules from the beginning, of others from their first call on. */
import type { Op, OpName } from "../../rule/expression";
import type { ElementwiseDefinition } from "../definition";
import { RULE_OPS } from "./rule-ops";

export type ElementwiseName = Op | Exclude<OpName, "where">;

export const ELEMENTWISE = RULE_OPS as Record<ElementwiseName, ElementwiseDefinition>;

/** The name of an op that only those ship who use it: it comes into the table at its first call. */
export function extended(name: string, definition: ElementwiseDefinition): ElementwiseName {
  ELEMENTWISE[name as ElementwiseName] ??= definition;
  return name as ElementwiseName;
}

/** The launches of every elementwise op by its name: of the ops of rules from the beginning, of others from their first call on. */
import type { Op, OpName } from "../../rule/expression";
import type { ElementwiseDefinition, OpDefinition } from "../definition";
import * as ops from "./rule-ops";

const { NODES, ...functions } = ops;
const OPS = Object.values(functions) as unknown as readonly { readonly definition: OpDefinition }[];

export type ElementwiseName = Op | Exclude<OpName, "where">;

export const ELEMENTWISE = {
  ...NODES,
  ...Object.fromEntries(OPS.map(({ definition }) => [definition.name, definition])),
} as Record<ElementwiseName, ElementwiseDefinition>;

/** The name of an op that only those ship who use it: it comes into the table at its first call. */
export function extended(name: string, definition: ElementwiseDefinition): ElementwiseName {
  ELEMENTWISE[name as ElementwiseName] ??= definition;
  return name as ElementwiseName;
}

/** Calls that follow from an op's definition: its operands, its arguments, and what PyTorch would be called. */
import type { OpDefinition, PrimitiveDefinition, Tensor } from "@opt/core";

export type Definition = (PrimitiveDefinition | OpDefinition) & { readonly name: string };

/** A tensor of a call. */
export interface Operand {
  /** Behind any axes, or alone. */
  readonly letters: string;
  /** Whether any axes come first, and whether those may have no elements. */
  readonly any: "none" | "full" | "empty";
  readonly kind: "numbers" | "mask" | "indices";
  /** The letter, or number, that indices are below. */
  readonly below: string;
}

export function operandsOf(definition: Definition): Operand[] {
  const texts = "gradients" in definition ? definition.gradients.map(() => "...") : (definition.tensors ?? ["..."]);
  return texts.map((text) => {
    const [, dtype, any, letters, below] = /^(bool |i32 )?(\.\.\.\+?)?(\w*)(?: <(\w))?$/.exec(text)!;
    return {
      letters: letters!,
      any: any === undefined ? "none" : any === "..." ? "empty" : "full",
      kind: dtype === undefined ? "numbers" : dtype === "bool " ? "mask" : "indices",
      below: below ?? "3",
    };
  });
}

/** What stands for an axis and a choice. */
export interface Chosen {
  readonly axis: number;
  readonly flag: boolean;
}

/** The arguments of a call with these tensors. */
export function argumentsOf<T>(definition: Definition, tensors: readonly T[], chosen: Chosen): unknown[] {
  const { arguments: more = [] } = definition;
  let isPlaced = false;
  const filled = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(filled);
    if (value === "$axis" || value === "$flag") return chosen[value.slice(1) as "axis" | "flag"];
    if (typeof value !== "string" || !/^\$[a-c]$/.test(value)) return value;
    isPlaced = true;
    return tensors["abc".indexOf(value[1]!)];
  };
  const rest = more.map(filled);
  if (isPlaced) return rest;
  const { isList = false, between = [] } = "gradients" in definition ? {} : definition;
  return isList ? [tensors, ...rest] : [...tensors.slice(0, 1), ...between, ...tensors.slice(1), ...rest];
}

/** PyTorch's expression for the same. */
export function expressionOf(definition: Definition, chosen: Chosen): string {
  const given = argumentsOf({ ...definition, arguments: ["$a", ...(definition.arguments ?? [])] }, ["a"], chosen);
  const [call] = definition.torch.split(" # ");
  return call!.replace(/\$(\d)/g, (_, place) => python(given[Number(place) + 1]));
}

/** A value in Python. */
function python(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return String(value).replace("Infinity", "float('inf')");
  return value === null || value === undefined ? "None" : JSON.stringify(value);
}

/** The tensors of a result: of a tensor, a list or an object. */
export function resultsOf(result: object): readonly Tensor[] {
  if (Array.isArray(result)) return result as readonly Tensor[];
  return "shape" in result ? [result as Tensor] : (Object.values(result) as Tensor[]);
}

/** Every op that `exports` has by its name, with its definition. */
export function definitionsIn(exports: object): ReadonlyMap<string, Definition> {
  return new Map(
    Object.entries(exports).flatMap(([name, op]) =>
      typeof op === "function" && "definition" in op ? [[name, { ...op.definition, name } as Definition] as const] : [],
    ),
  );
}

/** Which parameters are gathered together. */
import { type Module, Sequential } from "@opt/nn";
import type { NamedParameter } from "../data-parallel/parameters";

/** Children, and those of Sequentials in their place. */
export function unitsOf(module: Module): Module[] {
  return [...module.namedChildren()].flatMap(([, child]) => (child instanceof Sequential ? unitsOf(child) : [child]));
}

/** Each unit with its parameters; those of no unit, or of several side by side, are the model's. */
export function parametersByUnit(
  model: Module,
  units: readonly Module[],
  parameters: readonly NamedParameter[],
): [unit: Module, name: string, parameters: NamedParameter[]][] {
  const holders = units.map((unit) => ({ unit, tensors: new Set(unit.parameters()), below: new Set(unit.modules()) }));
  const lists = new Map<Module, NamedParameter[]>();
  for (const parameter of parameters) {
    const holding = holders.filter(({ tensors }) => tensors.has(parameter.tensor));
    const inner = holding.find(({ unit }) => holding.every(({ below }) => below.has(unit)));
    const owner = inner?.unit ?? model;
    lists.set(owner, [...(lists.get(owner) ?? []), parameter]);
  }
  return [...lists].map(([unit, list]) => [unit, list[0]!.name.split(".").slice(0, -1).join(".") || "the model", list]);
}

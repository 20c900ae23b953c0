/** Which parameters are gathered together. */
import { check, show } from "@opt/core";
import { type Module, ModuleDict, ModuleList, Sequential } from "@opt/nn";
import type { NamedParameter } from "../data-parallel/parameters";

/** Modules whose children are called one by one, by themselves or by who holds them. */
const isList = (module: Module) => module instanceof ModuleList || module instanceof ModuleDict;
const isContainer = (module: Module) => isList(module) || module instanceof Sequential;

/** Children, and those of containers in their place. */
export function unitsOf(module: Module): Module[] {
  return [...module.namedChildren()].flatMap(([, child]) => (isContainer(child) ? unitsOf(child) : [child]));
}

/** The modules that are meant: each one given, and each of a class given. @throws OptError BAD_ARGUMENT */
export function chosenUnits(
  where: string,
  model: Module,
  given: readonly (Module | (abstract new (...args: never[]) => Module))[],
): Module[] {
  const inside = [...model.modules()];
  return given.flatMap((unit) => {
    const found = inside.filter((module) => module === unit || (typeof unit === "function" && module instanceof unit));
    check(
      found.length > 0,
      "BAD_ARGUMENT",
      where,
      () => `each unit must be a module of the model or a class of some, got ${show(unit)}.`,
      "{ units: [...model.blocks] } or { units: [Block] }",
    );
    return found.flatMap((module) => (isList(module) ? unitsOf(module) : [module]));
  });
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

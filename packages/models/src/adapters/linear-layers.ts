/** The linear layers of a model by dotted name, and those that targets mean. */
import { check, checkValue, nearest, show } from "@opt/core";
import { Linear, type Module } from "@opt/nn";

/** A name's end at dots, as `q_proj` or `attn.q_proj`, or a pattern of whole names. */
export type Target = string | RegExp;

/** What belongs to an adapter, by its name in the model. */
export const isOfAdapter = (name: string) => /(^|\.)lora_/.test(name);

/** Each layer once, under its first name. */
export function linearLayers(model: Module): Map<string, Linear> {
  const found = new Map<string, Linear>();
  const seen = new Set<Module>();
  const visit = (module: Module, prefix: string) => {
    for (const [key, child] of module.namedChildren()) {
      if (seen.has(child) || isOfAdapter(key)) continue;
      seen.add(child);
      if (child instanceof Linear) found.set(prefix + key, child);
      visit(child, `${prefix}${key}.`);
    }
  };
  visit(model, "");
  return found;
}

/** @throws OptError BAD_ARGUMENT for no target, and for one that matches no linear layer */
export function targeted(where: string, model: Module, targets: readonly Target[]): Map<string, Linear> {
  const all = linearLayers(model);
  const names = [...all.keys()];
  const isList = Array.isArray(targets) && targets.length > 0;
  checkValue(isList, where, "targets", "a list of names or patterns", targets, advice("", names));
  for (const target of targets) {
    const isUsed = names.some((name) => isMeant(target, name));
    const problem = () => `each target must match a linear layer, got ${show(String(target))}.`;
    check(isUsed, "BAD_ARGUMENT", where, problem, advice(String(target), names));
  }
  return new Map([...all].filter(([name]) => targets.some((target) => isMeant(target, name))));
}

function isMeant(target: Target, name: string): boolean {
  if (typeof target !== "string") return new RegExp(target.source, target.flags.replace(/[gy]/g, "")).test(name);
  return name === target || name.endsWith(`.${target}`);
}

export const leafOf = (name: string) => name.slice(name.lastIndexOf(".") + 1);

function advice(target: string, names: readonly string[]): string {
  const leaves = new Set(names.map(leafOf));
  if (leaves.size === 0) return "The model has no linear layer.";
  return `The nearest names are ${nearest(leafOf(target), leaves, 5).join(", ")}.`;
}

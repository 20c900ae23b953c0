/** Rules made of rules, each once. */
import type { Rule } from "./rule";

/** By the rule itself: rules that compute the same, and so have one hash, may call their scalars otherwise. */
const known = new WeakMap<Rule, Map<string, Rule>>();

/** What `make` makes of a rule under this key; the same object each time. */
export function derived(rule: Rule, key: string, make: () => Rule): Rule {
  const made = known.get(rule) ?? new Map<string, Rule>();
  known.set(rule, made);
  const found = made.get(key) ?? make();
  made.set(key, found);
  return found;
}

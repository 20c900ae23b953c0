/** Rules in variants: where options switch parts of an update on and off, each combination of them has a rule of its own. */
import type { Rule } from "./rule";

/** What can be chosen in a rule, with all values of each choice. */
export type Choices = Readonly<Record<string, readonly (string | boolean)[]>>;

/** One value of each choice. */
export type VariantOf<Of extends Choices> = { readonly [Name in keyof Of]: Of[Name][number] };

/**
 * The rule of each variant, made by `define` when it is first asked for. Equal variants have the same rule object.
 *
 * @example
 * const choices = { decay: [false, true] } as const;
 * const sgdRule = ruleByVariant(choices, ({ decay }) =>
 *   defineRule({
 *     name: decay ? "sgdL2" : "sgd",
 *     buffers: ["param", "grad"],
 *     scalars: ["weightDecay", "negLr"],
 *     update: ({ param, grad }, { weightDecay, negLr }) => ({
 *       param: fma(negLr, decay ? fma(weightDecay, param, grad) : grad, param),
 *     }),
 *   }),
 * );
 */
export function ruleByVariant<const Of extends Choices>(
  choices: Of,
  define: (variant: VariantOf<Of>) => Rule,
): (variant: VariantOf<Of>) => Rule {
  const names = Object.keys(choices);
  const rules: Record<string, Rule> = {};
  return (variant) => {
    let key = "";
    for (const name of names) key += `${variant[name]} `;
    const rule = rules[key] ?? define(variant);
    rules[key] = rule;
    return rule;
  };
}

/**
 * The rules of all variants, for kernel builds and tests. The last choice changes first.
 *
 * @example
 * const choices = { decay: [false, true] } as const;
 * const sgdRule = ruleByVariant(choices, ({ decay }) =>
 *   defineRule({
 *     name: decay ? "sgdL2" : "sgd",
 *     buffers: ["param", "grad"],
 *     scalars: ["weightDecay", "negLr"],
 *     update: ({ param, grad }, { weightDecay, negLr }) => ({
 *       param: fma(negLr, decay ? fma(weightDecay, param, grad) : grad, param),
 *     }),
 *   }),
 * );
 * const sgdRules = everyVariant(choices, sgdRule);
 * console.log(sgdRules.map(({ name }) => name)); // ["sgd", "sgdL2"]
 */
export function everyVariant<const Of extends Choices>(
  choices: Of,
  rule: (variant: VariantOf<Of>) => Rule,
): readonly Rule[] {
  const extended = (variants: object[], [name, values]: [string, readonly unknown[]]) =>
    variants.flatMap((variant) => values.map((value) => ({ ...variant, [name]: value })));
  return Object.entries(choices)
    .reduce(extended, [{}])
    .map((variant) => rule(variant as VariantOf<Of>));
}

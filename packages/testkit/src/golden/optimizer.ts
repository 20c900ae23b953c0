/** Optimizers as the goldens know them: by name, options and public API. */
import { Optimizer, type Rule } from "@opt/core";

export type OptimizerOptions = Readonly<Record<string, number | boolean | string | readonly (number | null)[]>>;

/** What is needed of an optimizer. */
export interface OptimizerLike {
  step(): unknown;
  stateDict(): { readonly state: Readonly<Record<string, Readonly<Record<string, unknown>>>> };
}

export type OptimizerClass = new (
  // biome-ignore lint/suspicious/noExplicitAny: every optimizer has its own options
  ...args: [params: Iterable<any>, options?: any]
) => OptimizerLike;

export const isRuleList = (value: unknown): value is Rule[] =>
  Array.isArray(value) && value.every((each) => "hash" in Object(each));

export const isOptimizerClass = (value: unknown): value is OptimizerClass =>
  typeof value === "function" && value.prototype instanceof Optimizer;

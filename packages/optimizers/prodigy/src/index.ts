/** Optimizers that find their learning rate: Prodigy and D-Adaptation. */
import type { Rule } from "@opt/core";
import { dadaptRules } from "./dadapt";
import { gradientRule } from "./distance";
import { prodigyOwnRules } from "./prodigy";

export { DAdaptAdamW, type DAdaptAdamWOptions } from "./dadapt";
export { Prodigy, type ProdigyOptions } from "./prodigy";

/** Every rule, for kernel builds and tests. */
export const prodigyRules: readonly Rule[] = [gradientRule, ...prodigyOwnRules, ...dadaptRules];

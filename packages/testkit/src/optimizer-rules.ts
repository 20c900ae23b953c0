/** Every rule of every optimizer: the list that the contract suite tries on each device. A new optimizer adds its rules here. */
import { adamRules } from "@opt/adam-amsgrad/rules";
import type { Rule } from "@opt/core";
import { nadamRules } from "@opt/nadam/rules";

export const optimizerRules: readonly Rule[] = [...nadamRules, ...adamRules];

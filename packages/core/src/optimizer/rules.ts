/** `@opt/core/rules`: the rules of clipping and loss scaling, for kernel builds and tests. */
import type { Rule } from "../rule/rule";
import { CLAMP } from "./clip";
import { SCALE } from "./norm";
import { UPDATE } from "./scaler";

/** Every rule that core launches by itself. */
export const coreRules: readonly Rule[] = [SCALE, CLAMP, UPDATE];

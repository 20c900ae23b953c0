/** `@opt/core/rules`: the rules of clipping, loss scaling and packed state, for kernel builds and tests. */
import type { Rule } from "../rule/rule";
import { CLAMP } from "./gradients/clip";
import { UPDATE } from "./gradients/loss-scale";
import { SCALE } from "./gradients/norm";
import { PACK, UNPACK } from "./state/packing-rules";

/** Every rule that core launches by itself. */
export const coreRules: readonly Rule[] = [SCALE, CLAMP, UPDATE, PACK, UNPACK];

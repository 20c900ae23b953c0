/** `@opt/core/rules`: the rules of clipping, loss scaling and packed state, for kernel builds and tests. */
import type { Rule } from "../rule/rule";
import { CLAMP } from "./clip";
import { UPDATE } from "./loss-scale";
import { SCALE } from "./norm";
import { PACK, UNPACK } from "./packing-rules";

/** Every rule that core launches by itself. */
export const coreRules: readonly Rule[] = [SCALE, CLAMP, UPDATE, PACK, UNPACK];

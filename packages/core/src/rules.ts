/** `@opt/core/rules`: the rules that core launches itself, for kernel builds and tests. */

import { UPDATE } from "./loss-scaling/loss-scale";
import { CLAMP } from "./optimizer/gradients/clip";
import { SCALE } from "./optimizer/gradients/norm";
import { RENEW } from "./optimizer/staged-launch";
import { PACK, UNPACK } from "./optimizer/state/packing-rules";
import type { Rule } from "./rule/rule";

/** Clipping, loss scaling, and state that stages or packing renew. */
export const coreRules: readonly Rule[] = [SCALE, CLAMP, UPDATE, RENEW, PACK, UNPACK];

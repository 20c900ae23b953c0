/** `@opt/core/rules`: the rules that core launches itself, for kernel builds and tests. */

import { UPDATE } from "../loss-scaling/loss-scale";
import type { Rule } from "../rule/rule";
import { CLAMP } from "./gradients/clip";
import { SCALE } from "./gradients/norm";
import { RENEW } from "./staged-launch";
import { PACK, UNPACK } from "./state/packing-rules";

/** Clipping, loss scaling, and state that stages or packing renew. */
export const coreRules: readonly Rule[] = [SCALE, CLAMP, UPDATE, RENEW, PACK, UNPACK];

/** Passes for one op, which come with it: only those ship them who use the op. */

import type { Device } from "../../device/device";
import { shared } from "../../host/shared";
import type { Uses } from "./uses";

export type Pass = (uses: Uses, device: Device) => void;

const passes = /* @__PURE__ */ shared("carriedPasses", () => new Set<Pass>());

/** The same kind, from whose import on compiled functions run the pass. */
export function withPass<K>(kind: K, pass: Pass): K {
  passes.add(pass);
  return kind;
}

export function carriedPasses(): Iterable<Pass> {
  return passes;
}

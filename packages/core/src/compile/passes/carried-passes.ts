/** Passes for one op, which `init` loads if the op was imported. */

import type { Device } from "../../device/device";
import { loadedLater } from "../../device/loaded-later";
import { shared } from "../../host/shared";
import type { Uses } from "./uses";

export type Pass = (uses: Uses, device: Device) => void;

const passes = /* @__PURE__ */ shared("carriedPasses", () => new Set<{ readonly code?: Pass }>());

/** The same kind, from whose import on compiled functions run the pass. */
export function withPass<K>(kind: K, load: () => Promise<Pass>): K {
  passes.add(loadedLater(load));
  return kind;
}

export function carriedPasses(): readonly Pass[] {
  return [...passes].flatMap(({ code }) => code ?? []);
}

import { loadedLater } from "../device/loaded-later";

/** What compiled functions do without before the first `init`. */
export const LATER = /* @__PURE__ */ loadedLater(() => import("./passes/passes"));

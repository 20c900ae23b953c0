/** What a step of growth is, and how large it may make things. */
import type { Draft, Value } from "./draft";

/** One more value made from x, or null where that is not possible. */
export type Growth = (draft: Draft, x: Value) => Value | null;

/** Elements of a result. */
export const MOST = 1 << 17;

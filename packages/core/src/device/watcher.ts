/** Who looks at launches and ops as they run. `watch/` has those that there are. */
import type { Backend } from "../backend/backend";
import type { Memory } from "../backend/memory";
import type { Launch } from "../backend/spec";
import { shared } from "../host/shared";

/** A tensor, as far as a watcher looks at it. */
export interface WatchedTensor {
  readonly shape: readonly number[];
  readonly storage: { readonly memory: Memory };
}

/** An op on the tape. */
export interface WatchedOp {
  readonly name: string;
}

export interface Watcher {
  /** Compiled functions run as they are written. Otherwise the launches of their traces run one by one. */
  readonly isEager: boolean;
  /** Calls `run`, which launches. */
  launch(device: { readonly name: string; readonly backend: Backend }, launch: Launch, run: () => void): void;
  /** An op has been computed, and is on the tape. */
  recorded(op: WatchedOp, output: WatchedTensor): void;
  /** Calls `run`, which computes the gradients of an op's inputs. */
  backward<Gradient extends WatchedTensor | null>(op: WatchedOp, run: () => readonly Gradient[]): readonly Gradient[];
}

export const watching = /* @__PURE__ */ shared("watcher", () => ({ watcher: null as Watcher | null }));

/** Runs `body`, to its end if it is asynchronous, and shows `watcher` what it does. */
export async function watched<Result>(watcher: Watcher, body: () => Result): Promise<Awaited<Result>> {
  const before = watching.watcher;
  watching.watcher = watcher;
  try {
    return await body();
  } finally {
    watching.watcher = before;
  }
}

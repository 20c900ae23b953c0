/** What communicators of one engine share, and who speaks in one of them. */
import type { Engine } from "../engine/engine";

/** What this process sent: the cost model's figures, counted. */
export interface Traffic {
  messages: number;
  bytes: number;
}

/** What the groups of one engine share. */
export interface World {
  readonly engine: Engine;
  readonly timeout: number;
  /** The number of the next group that this process has a part in. */
  nextGroup: number;
  /** Of the next axis of a mesh: all ranks make the same ones, and agree without a word. */
  nextMeshGroup: number;
  isClosed: boolean;
}

/** Some ranks of a job, as one of them sees them. */
export interface Members {
  readonly world: World;
  readonly name: string;
  readonly rank: number;
  /** Ranks of the world, by their rank here. */
  readonly members: readonly number[];
  readonly traffic: Traffic;
}

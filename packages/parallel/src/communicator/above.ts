/** What communicators make of layers above. */
import type { Communicator as CheckpointCommunicator, Layout } from "@opt/checkpoint";
import type { Tensor } from "@opt/core";

/** Every Module is one. */
export interface Replicable {
  forward(...inputs: never[]): unknown;
  namedParameters(): Iterable<[string, Tensor]>;
}

/** What loops ask of a `DataParallel`. */
export interface Replica {
  divisor: number;
  sync(): Promise<void>;
  noSync<Result>(body: () => Result): Result;
  dispose(): void;
}

/** Who saves tensors together, and which of them has which part. */
export interface Placing<Ranks = CheckpointCommunicator> {
  readonly communicator: Ranks;
  readonly layout: Layout;
}

export type NamedTensors = Iterable<readonly [name: string, tensor: Tensor]>;

/** Set by the layers above. */
export const above: {
  replicate?: (model: Replicable, communicator: never) => Replica;
  placing?: (communicator: never, tensors: NamedTensors) => Placing<never>;
} = {};

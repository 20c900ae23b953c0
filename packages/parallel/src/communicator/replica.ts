/** How communicators make data-parallel models, which are of a layer above. */
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

type Replicate = (model: Replicable, communicator: never) => Replica;

/** Set by the layer above. */
export const replicas: { replicate?: Replicate } = {};

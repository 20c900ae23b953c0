/** What a run leaves for the one that goes on, and where it is kept in between. */
import {
  type Device,
  type Generator,
  type GradScalerState,
  type OptimizerState,
  Tensor,
  tensorFromBytes,
} from "@opt/core";
import type { Id, Options, Spec } from "./program";

export interface AddedGroup {
  readonly optimizer: Id;
  readonly params: readonly Id[];
  readonly options: Options;
}

export interface Contents {
  readonly tensors: Readonly<Record<string, Tensor>>;
  readonly optimizers: Readonly<Record<Id, OptimizerState>>;
  /** Plain data. */
  readonly values: {
    readonly schedules: Readonly<Record<Id, unknown>>;
    /** Of averages. */
    readonly updates: Readonly<Record<Id, number>>;
    readonly groups: readonly AddedGroup[];
    /** Layers in evaluation. */
    readonly evaluating: readonly Id[];
    readonly frozen: readonly Id[];
    readonly generator: ReturnType<Generator["stateDict"]>;
    readonly scaler: GradScalerState | null;
  };
}

/** Keeps contents, whose tensors are gone when it has; what it resolves to gives them back, in tensors that the caller frees. */
export type Store = (contents: Contents, seed: number) => Promise<(device: Device) => Promise<Contents>>;

interface PackedSpec extends Spec {
  readonly bytes: string;
}

/** Keeps everything as JSON. */
export const asJson: Store = async (contents) => {
  const text = JSON.stringify(await packed(contents));
  return async (device) =>
    JSON.parse(text, (_, value) => (isPacked(value) ? unpacked(value, device) : value)) as Contents;
};

/** Frees the tensors of what a store gave back. */
export function free({ tensors, optimizers }: Contents): void {
  const states = Object.values(optimizers).flatMap(({ state }) => Object.values(state).flatMap(Object.values));
  for (const part of [...Object.values(tensors), ...states]) if (typeof part !== "number") part.dispose();
}

async function packed(value: unknown): Promise<unknown> {
  if (value instanceof Tensor) {
    const bytes = Buffer.from(await value.bytes()).toString("base64");
    return { bytes, shape: value.shape, dtype: value.dtype } satisfies PackedSpec;
  }
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return Promise.all(value.map(packed));
  const entries = Object.entries(value).map(async ([key, part]) => [key, await packed(part)] as const);
  return Object.fromEntries(await Promise.all(entries));
}

const isPacked = (value: unknown): value is PackedSpec =>
  typeof value === "object" && value !== null && "bytes" in value;

function unpacked({ bytes, shape, dtype }: PackedSpec, device: Device): Tensor {
  return tensorFromBytes(new Uint8Array(Buffer.from(bytes, "base64")), shape, { dtype, device });
}

/** What a run leaves for the one that goes on, and where it is kept in between. */
import {
  type Device,
  type Generator,
  type GradScalerState,
  type OptimizerState,
  type Tensor,
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
    readonly training: boolean;
    readonly frozen: readonly Id[];
    readonly generator: ReturnType<Generator["stateDict"]>;
    readonly scaler: GradScalerState | null;
  };
}

/** Keeps contents, whose tensors are gone when it has; what it resolves to gives them back, in tensors that the caller frees. */
export type Store = (contents: Contents, seed: number) => Promise<(device: Device) => Promise<Contents>>;

interface Packed extends Spec {
  readonly bytes: string;
}

/** Keeps everything as JSON. */
export const asJson: Store = async ({ tensors, optimizers, values }) => {
  const parts: [string[], Packed | number][] = [];
  for (const [name, part] of Object.entries(tensors)) parts.push([["tensors", name], await packed(part)]);
  for (const [id, { state }] of Object.entries(optimizers)) {
    for (const [name, entry] of Object.entries(state)) {
      for (const [key, part] of Object.entries(entry)) {
        parts.push([[id, name, key], typeof part === "number" ? part : await packed(part)]);
      }
    }
  }
  const groups = Object.entries(optimizers).map(([id, optimizer]) => [id, optimizer.groups]);
  const text = JSON.stringify({ parts, groups, values });
  return async (device) => {
    const file = JSON.parse(text) as {
      parts: typeof parts;
      groups: [Id, OptimizerState["groups"]][];
      values: typeof values;
    };
    const loaded: Record<string, Tensor> = {};
    const states = Object.fromEntries(
      file.groups.map(([id, own]) => [id, { groups: own, state: {} as OptimizerState["state"] }]),
    );
    for (const [[of, name, key], part] of file.parts) {
      const value = typeof part === "number" ? part : unpacked(part, device);
      if (key === undefined) loaded[name!] = value as Tensor;
      else {
        const { state } = states[of!]!;
        state[name!] = { ...state[name!], [key]: value } as OptimizerState["state"][string];
      }
    }
    return { tensors: loaded, optimizers: states, values: file.values };
  };
};

/** Frees the tensors of what a store gave back. */
export function free({ tensors, optimizers }: Contents): void {
  const states = Object.values(optimizers).flatMap(({ state }) => Object.values(state).flatMap(Object.values));
  for (const part of [...Object.values(tensors), ...states]) if (typeof part !== "number") part.dispose();
}

async function packed(value: Tensor): Promise<Packed> {
  return { bytes: Buffer.from(await value.bytes()).toString("base64"), shape: value.shape, dtype: value.dtype };
}

function unpacked({ bytes, shape, dtype }: Packed, device: Device): Tensor {
  return tensorFromBytes(new Uint8Array(Buffer.from(bytes, "base64")), shape, { dtype, device });
}

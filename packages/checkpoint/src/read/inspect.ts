/** What a checkpoint holds, without reading a tensor. */

import { checkOptions } from "@opt/core";
import { bytesOf, type StoredDType } from "../format/dtype";
import type { Json, Role, Skipped } from "../format/source";
import { listSteps } from "../format/steps";
import type { Mesh } from "../layout/layout";
import { localFileSystem } from "../platform/local";
import type { NativeSource } from "./native";
import { checkedPlace, isNative, OPEN_OPTIONS, type OpenOptions, type Place, useSource } from "./open";

export interface InspectedTensor {
  readonly name: string;
  readonly dtype: StoredDType;
  readonly shape: readonly number[];
  readonly bytes: number;
  readonly role?: Role;
  readonly follows?: string;
  /** In how many pieces it is stored. */
  readonly boxes: number;
}

export interface Inspection {
  readonly format: string;
  readonly path: string;
  readonly step?: number;
  /** All complete steps, where `path` is the folder of a run. */
  readonly steps?: readonly number[];
  readonly world?: number;
  readonly mesh?: Mesh;
  readonly files?: readonly { readonly name: string; readonly byteLength: number }[];
  readonly tensors: readonly InspectedTensor[];
  readonly values: { readonly [key: string]: Json };
  /** Why a tensor that is there cannot be read, by name. */
  readonly unreadable?: { readonly [name: string]: string };
  /** Objects that are no data, where there are some. */
  readonly skipped?: readonly Skipped[];
  readonly bytes: number;
}

/** @throws OptError MISSING, CORRUPT, UNSUPPORTED, REFUSED, IO */
export async function inspectCheckpoint(path: Place, options: OpenOptions = {}): Promise<Inspection> {
  checkedPlace("inspectCheckpoint", path);
  checkOptions("inspectCheckpoint", options, OPEN_OPTIONS);
  return useSource(path, options, async (source, found, asked) => {
    const tensors = [...source.tensors.values()].map(({ name, dtype, shape, role, follows, boxes }) => ({
      name,
      dtype,
      shape,
      bytes: bytesOf({ dtype, shape }),
      ...(role ? { role } : {}),
      ...(follows === undefined ? {} : { follows }),
      boxes: boxes.length,
    }));
    const { format, step, values } = source;
    const common = { format, path: source.path, ...(step === undefined ? {} : { step }) };
    const bytes = tensors.reduce((sum, tensor) => sum + tensor.bytes, 0);
    const skipped = source.skipped?.length ? { skipped: source.skipped } : {};
    const unreadable = source.unreadable?.size ? { unreadable: Object.fromEntries(source.unreadable) } : {};
    const ours = isNative(source) ? await describeNative(source, asked, found) : {};
    return { ...common, ...ours, tensors, values, ...unreadable, ...skipped, bytes };
  });
}

async function describeNative(
  { manifest, path }: NativeSource,
  asked: string,
  { fileSystem = localFileSystem }: OpenOptions,
) {
  const files = manifest.files.map(({ name, byteLength }) => ({ name, byteLength }));
  const isRun = !path.startsWith(asked) || path.length > asked.length;
  const steps = isRun ? { steps: (await listSteps(fileSystem, asked)).map(({ step }) => step) } : {};
  return { ...steps, world: manifest.world, mesh: manifest.mesh, files };
}

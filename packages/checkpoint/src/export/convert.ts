/** Converting: a checkpoint of any known system into ours, a safetensors file or a MindSpore `.ckpt`, under the names it has there. */
import { OptError } from "@opt/core";
import { Verification } from "../format/checked";
import { bytesPerElement } from "../format/dtype";
import { elementCount } from "../format/safetensors";
import type { TensorSource } from "../format/source";
import { underOurNames } from "../import/names/names";
import { mergeSource } from "../read/merge";
import { type OpenOptions, openSource } from "../read/open";
import { reshardSource } from "../read/reshard";
import { type Selection, selectTensors } from "../read/select";
import { type ProgressCallback, reporter } from "../stores/progress";
import { writeMindspore } from "./mindspore";

const TARGETS = ["safetensors", "ckpt", "checkpoint"] as const;

/** `safetensors`: one file of whole tensors; `ckpt`: MindSpore's; `checkpoint`: a folder of ours, for one rank. */
export type ConvertTarget = (typeof TARGETS)[number];

export interface ConvertOptions extends Selection, OpenOptions {
  readonly to: ConvertTarget;
  /** New names: each key is a tensor's name, or its beginning up to a dot or slash. It goes before what the format itself tells. */
  readonly map?: Readonly<Record<string, string>>;
  /** Most bytes of buffers, 64 MiB without it. */
  readonly maxMemory?: number;
  readonly progress?: ProgressCallback;
}

export interface ConvertResult {
  readonly path: string;
  /** The format that was found. */
  readonly from: string;
  readonly to: ConvertTarget;
  readonly tensors: number;
  /** Tensors that no checksum of ours vouches for. */
  readonly unverified: readonly string[];
}

/**
 * Writes the checkpoint at `path` to `destination`, parameters under their names, optimizer state as `<parameter>.<state>`, so that a
 * run begun elsewhere goes on here. Throws MISSING, CORRUPT, REFUSED, UNSUPPORTED, DUPLICATE (two names fall together), BAD_ARGUMENT, IO.
 */
export async function convertCheckpoint(
  path: string,
  destination: string,
  options: ConvertOptions,
): Promise<ConvertResult> {
  const { to, map } = options;
  if (!TARGETS.includes(to)) {
    throw new OptError("BAD_ARGUMENT", "convertCheckpoint", `to must be one of ${TARGETS.join(", ")}, got ${to}.`, "");
  }
  const source = await openSource(path, options);
  try {
    const named = await underOurNames(source, map);
    const unverified = await write(named, destination, options);
    return { path: destination, from: source.format, to, tensors: named.tensors.size, unverified };
  } finally {
    await source.close();
  }
}

async function write(source: TensorSource, destination: string, options: ConvertOptions): Promise<readonly string[]> {
  if (options.to === "safetensors") return (await mergeSource(source, destination, options)).unverified;
  if (options.to === "checkpoint")
    return (await reshardSource(source, destination, { ...options, ranks: 1 })).unverified;
  const verification = new Verification();
  const tensors = selectTensors(source, options, verification);
  const total = tensors.reduce((sum, { shape, dtype }) => sum + elementCount(shape)! * bytesPerElement(dtype), 0);
  const selected = { ...source, tensors: new Map(tensors.map((tensor) => [tensor.name, tensor])) };
  const progress = reporter(options.progress, total);
  await writeMindspore(selected, destination, { ...options, progress });
  return options.verify === false ? tensors.map(({ name }) => name) : verification.unverified();
}

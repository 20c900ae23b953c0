/** Converting: a checkpoint of any known system into another's form, under the names it has there. */
import { check, checkOptions, OptError } from "@opt/core";
import { bytesOf } from "../format/dtype";
import type { TensorSource } from "../format/source";
import { Verification } from "../format/verification";
import type { Layout } from "../layout/layout";
import { NAMING_OPTIONS, type NamingOptions, named } from "../naming/named";
import { OPEN_OPTIONS, type OpenOptions, openSource } from "../read/open";
import { SELECTION_OPTIONS, type Selection, selectTensors } from "../read/select";
import { mergeSource } from "../rewrite/merge";
import { reshardSource } from "../rewrite/reshard";
import { OUTPUT_OPTIONS, type OutputOptions } from "../rewrite/stream-files";
import { reporter } from "../stores/progress";
import { writeFlax } from "./flax/write";
import { writeMindspore } from "./mindspore/write";
import { writeMindsporeRanks } from "./mindspore/write-ranks";
import { writeNpz } from "./numpy/write";
import { writeHuggingFace } from "./safetensors/write-hugging-face";
import { writeTorch } from "./torch/write";
import { writeDcp } from "./torch/write-dcp";

const TARGETS = ["safetensors", "ckpt", "checkpoint", "pt", "dcp", "npz", "msgpack"] as const;

/**
 * `safetensors`: one file of whole tensors; `ckpt`: MindSpore's; `checkpoint`: a folder of ours; `pt`: a file for `torch.load`; `dcp`: a folder for `torch.distributed.checkpoint.load`; `npz`: a file for `numpy.load`, of the tensors alone; `msgpack`: a file for `flax.serialization`, of nested dicts of the tensors alone.
 */
export type ConvertTarget = (typeof TARGETS)[number];

/** `exclude` leaves out what the source calls so, or what is called so here. */
export interface ConvertOptions extends Selection, OpenOptions, OutputOptions, NamingOptions {
  readonly to: ConvertTarget;
  /** Replace what is there: a file, a folder, or a step of a run. */
  readonly overwrite?: boolean;
  /** End MindSpore files with a checksum. */
  readonly crc?: boolean;
  /** For how many ranks: of a checkpoint of ours, 1 without it; of `ckpt`, a folder of their files and the strategy. */
  readonly ranks?: number;
  /** How they are cut. */
  readonly layout?: Layout;
  /** For `ckpt` with ranks: part `i` of `n` of the work, counted from 1, so that several processes share it. */
  readonly job?: readonly [i: number, n: number];
  /** For `safetensors`: a folder of files of at most so many bytes of tensors, and their index, as Hugging Face's libraries load it. */
  readonly maxShardSize?: number;
}

const CONVERT_OPTIONS = {
  ...OPEN_OPTIONS,
  ...SELECTION_OPTIONS,
  ...OUTPUT_OPTIONS,
  to: "string",
  ...NAMING_OPTIONS,
  overwrite: "boolean",
  crc: "boolean",
  ranks: "number",
  layout: "object",
  job: "array",
  maxShardSize: "number",
} as const;

export interface ConvertResult {
  readonly path: string;
  /** The format that was found. */
  readonly from: string;
  readonly to: ConvertTarget;
  readonly tensors: number;
  /** Tensors that no checksum of ours vouches for. */
  readonly unverified: readonly string[];
}

/** See operations.ts. */
export async function convertCheckpoint(
  path: string | readonly string[],
  destination: string,
  options: ConvertOptions,
): Promise<ConvertResult> {
  checkOptions("convertCheckpoint", options, CONVERT_OPTIONS);
  checkTarget(options);
  const { exclude: _, ...selection } = options;
  const { to } = selection;
  const sources: TensorSource[] = [];
  try {
    for (const one of [path].flat() as readonly string[]) sources.push(await openSource(one, options));
    const result = await named(sources, options);
    const fileSystem = options.outFileSystem ?? options.fileSystem;
    const { tensors, unverified } = await write(result, destination, {
      ...selection,
      ...(fileSystem && { fileSystem }),
    });
    return { path: destination, from: result.format, to, tensors, unverified };
  } finally {
    for (const source of sources) await source.close();
  }
}

/** @throws OptError BAD_ARGUMENT for options that do not belong to the target */
function checkTarget({ to, parameterOrder, ranks, layout, job, maxShardSize }: ConvertOptions): void {
  const isCut = ranks !== undefined || layout !== undefined;
  const must = (holds: boolean, rule: string, advice = "Leave it out.") =>
    check(holds, "BAD_ARGUMENT", "convertCheckpoint", () => rule, advice);
  must(TARGETS.includes(to), `to must be one of ${TARGETS.join(", ")}, got ${to}.`, "Use one of them.");
  const isOrder = parameterOrder === undefined || parameterOrder === "model";
  must(isOrder, `parameterOrder must be "model", got ${JSON.stringify(parameterOrder)}.`);
  const mayCut = (job === undefined || (to === "ckpt" && isCut)) && (!isCut || to === "ckpt" || to === "checkpoint");
  must(mayCut, `ranks, layout and job are for ckpt and checkpoint, and job needs ranks, got them with ${to}.`);
  const maySplit = maxShardSize === undefined || to === "safetensors";
  must(maySplit, `maxShardSize is for safetensors, got it with ${to}.`);
}

interface ConversionResult {
  readonly tensors: number;
  readonly unverified: readonly string[];
}

async function write(source: TensorSource, destination: string, options: ConvertOptions): Promise<ConversionResult> {
  const { maxShardSize } = options;
  if (maxShardSize !== undefined) return writeHuggingFace(source, destination, { ...options, maxShardSize });
  if (options.to === "safetensors") return mergeSource(source, destination, options);
  if (options.to === "checkpoint") {
    const cut = options.layout === undefined ? { ranks: options.ranks ?? 1 } : {};
    const { unverified } = await reshardSource(source, destination, { ...options, ...cut });
    return { tensors: source.tensors.size, unverified };
  }
  const verification = new Verification();
  const tensors = selectTensors(source, options, verification);
  const total = tensors.reduce((sum, tensor) => sum + bytesOf(tensor), 0);
  const selected = { ...source, tensors: new Map(tensors.map((tensor) => [tensor.name, tensor])) };
  const settings = { ...options, progress: reporter(options.progress, total) };
  if (options.to === "pt") await writeTorch(selected, destination, settings);
  else if (options.to === "dcp") await writeDcp(selected, destination, settings);
  else if (options.to === "msgpack") await writeFlax(selected, destination, settings);
  else if (options.to === "npz") await writeNpz(selected, destination, settings);
  else if (options.ranks !== undefined || options.layout !== undefined) {
    await writeMindsporeRanks(selected, destination, settings);
  } else if (options.to === "ckpt") await writeMindspore(selected, destination, settings);
  else throw new OptError("INTERNAL", "convertCheckpoint", `no writer for ${options.to}.`);
  const unverified = options.verify === false ? tensors.map(({ name }) => name) : verification.unverified();
  return { tensors: tensors.length, unverified };
}

/** The work of converting: opened, named, left out and renamed, then written as the target's writer does. */
import { check, OptError } from "@opt/core";
import { Verification } from "../format/checked";
import { bytesPerElement } from "../format/dtype";
import { elementCount } from "../format/safetensors";
import type { TensorSource } from "../format/source";
import { underOurNames } from "../import/names/names";
import { renamePatterns, withoutTensors } from "../import/names/rename";
import { mergeSource } from "../read/merge";
import { openSource } from "../read/open";
import { reshardSource } from "../read/reshard";
import { selectTensors } from "../read/select";
import { reporter } from "../stores/progress";
import { writeHuggingFace } from "./hugging-face";
import { writeMindspore } from "./mindspore/file";
import { writeMindsporeRanks } from "./mindspore/ranks";
import type { ConvertOptions, ConvertResult } from "./target";
import { writeDcp } from "./torch/dcp";
import { writeTorch } from "./torch/file";

export async function convert(
  paths: readonly string[],
  destination: string,
  options: ConvertOptions,
): Promise<ConvertResult> {
  const { to, exclude = [], rename = {} } = options;
  const sources: TensorSource[] = [];
  try {
    for (const one of paths) sources.push(await openSource(one, options));
    const unused = new Set(exclude);
    const kept = sources.map((source) => withoutTensors(source, exclude, unused));
    const named = withoutTensors(await underOurNames(kept, options), exclude, unused);
    const [wrong] = unused;
    check(
      wrong === undefined,
      "MISSING",
      named.path,
      () => `it holds no tensor ${JSON.stringify(wrong)} to leave out.`,
    );
    const result = renamePatterns(named, rename);
    const { tensors, unverified } = await write(result, destination, options);
    return { path: destination, from: named.format, to, tensors, unverified };
  } finally {
    for (const source of sources) await source.close();
  }
}

interface Written {
  readonly tensors: number;
  readonly unverified: readonly string[];
}

async function write(source: TensorSource, destination: string, options: ConvertOptions): Promise<Written> {
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
  const total = tensors.reduce((sum, { shape, dtype }) => sum + elementCount(shape)! * bytesPerElement(dtype), 0);
  const selected = { ...source, tensors: new Map(tensors.map((tensor) => [tensor.name, tensor])) };
  const settings = { ...options, progress: reporter(options.progress, total) };
  if (options.to === "pt") await writeTorch(selected, destination, settings);
  else if (options.to === "dcp") await writeDcp(selected, destination, settings);
  else if (options.ranks !== undefined || options.layout !== undefined) {
    await writeMindsporeRanks(selected, destination, settings);
  } else if (options.to === "ckpt") await writeMindspore(selected, destination, settings);
  else throw new OptError("INTERNAL", "convertCheckpoint", `no writer for ${options.to}.`);
  const unverified = options.verify === false ? tensors.map(({ name }) => name) : verification.unverified();
  return { tensors: tensors.length, unverified };
}

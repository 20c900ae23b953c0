/** The folder of a parallel MindSpore run: `rank_<n>/<prefix>-<epoch>_<step>.ckpt`, and strategy files that say what is whose. */

import { check, OptError } from "@opt/core";
import type { FormatReader, ImportOptions, Json, SourceTensor } from "../../format/source";
import { FilePool } from "../../stores/file-pool";
import { diskError, type FileSystem, type FolderEntry } from "../../stores/file-system";
import { join } from "../../stores/path";
import { pooledFile } from "../bytes/source";
import { type HeldPart, mergeParts } from "./merge-parts";
import { readMindspore } from "./read";
import { type MindsporeLayout, readMindsporeStrategy } from "./strategy";

const RANK = /^rank_(\d+)$/;

export const mindsporeRanksReader: FormatReader = {
  format: "MindSpore ranks",
  async open(path, fileSystem, options = {}) {
    const files = new FilePool(fileSystem, "read");
    try {
      const strategy = await readStrategies(path, fileSystem, files);
      check(
        strategy.size > 0 || options.sourceLayout !== undefined,
        "MISSING",
        path,
        () => "no strategy file says how the ranks' parts belong together.",
        'Put it into this folder, as ckpt_strategy.ckpt, or give a source layout (--source-layout; { "*": "replicate" } where every rank holds the same).',
      );
      const ranks = await filesOfStep(path, fileSystem, options);
      const parts = new Map<string, HeldPart[]>();
      const values: Record<string, Json> = {};
      const unreadable = new Map<string, string>();
      for (const [rank, file] of ranks.files.entries()) {
        const read = await readMindspore(await pooledFile(files, join(path, file)), file, options);
        Object.assign(values, read.values);
        for (const [name, reason] of read.unreadable) unreadable.set(name, reason);
        for (const tensor of read.tensors) {
          const held = parts.get(tensor.name) ?? [];
          parts.set(tensor.name, held);
          held.push({ rank, tensor });
        }
      }
      const { sourceLayout } = options;
      const layout = sourceLayout === undefined ? {} : { sourceLayout };
      const context = { path, ranks: ranks.files.length, strategy, names: parts, ...layout };
      const tensors = new Map<string, SourceTensor>();
      for (const [name, held] of parts) tensors.set(name, mergeParts(name, held, context));
      const close = (): Promise<void> => files.close();
      return { format: this.format, path, step: ranks.step, tensors, values, unreadable, close };
    } catch (error) {
      await files.close();
      throw error;
    }
  },
};

/** Every strategy file of the folder or its `strategy` folder, together: stages of a pipeline have one each. Throws BAD_STATE. */
async function readStrategies(
  path: string,
  fileSystem: FileSystem,
  files: FilePool,
): Promise<Map<string, MindsporeLayout>> {
  const entries = await list(fileSystem, path);
  const found = entries.filter(isStrategy).map(({ name }) => join(path, name));
  if (entries.some(({ name, kind }) => kind === "folder" && name === "strategy")) {
    const inner = await list(fileSystem, join(path, "strategy"));
    found.push(
      ...inner
        .filter(({ kind, name }) => kind === "file" && name.endsWith(".ckpt"))
        .map(({ name }) => join(path, "strategy", name)),
    );
  }
  const layouts = new Map<string, MindsporeLayout>();
  for (const file of found.sort()) {
    for (const [name, layout] of await readMindsporeStrategy(await pooledFile(files, file))) {
      const known = layouts.get(name);
      check(
        known === undefined || JSON.stringify(known) === JSON.stringify(layout),
        "BAD_STATE",
        file,
        () => `it splits ${JSON.stringify(name)} in another way than the strategy files before it.`,
        "Keep the files of one run only.",
      );
      layouts.set(name, layout);
    }
  }
  return layouts;
}

function isStrategy({ name, kind }: FolderEntry): boolean {
  return kind === "file" && /strategy.*\.ckpt$/.test(name);
}

interface Age {
  readonly epoch: number;
  readonly step: number;
}

/** A file of each rank, in the order of ranks: all of one epoch and step, the newest or the one asked for. Throws MISSING. */
async function filesOfStep(
  path: string,
  fileSystem: FileSystem,
  { step }: ImportOptions,
): Promise<{ files: string[]; step: number }> {
  const folders = (await list(fileSystem, path)).filter(({ name, kind }) => kind === "folder" && RANK.test(name));
  const ranks = folders
    .map(({ name }) => ({ name, rank: Number(RANK.exec(name)![1]) }))
    .sort((a, b) => a.rank - b.rank);
  const missing = ranks.findIndex(({ rank }, i) => rank !== i);
  if (missing >= 0) throw absent(path, `rank_${missing} is not there`);
  const saved: Map<string, string>[] = [];
  for (const { name } of ranks) {
    const entries = (await list(fileSystem, join(path, name))).filter((entry) => entry.kind === "file");
    const checkpoints = entries.filter((entry) => entry.name.endsWith(".ckpt")).map((entry) => entry.name);
    saved.push(new Map(checkpoints.map((file) => [JSON.stringify(ageOf(file)), join(name, file)])));
  }
  const common = [...(saved[0]?.keys() ?? [])]
    .filter((age) => saved.every((files) => files.has(age)))
    .map((key) => ({ key, ...(JSON.parse(key) as Age) }))
    .filter((age) => step === undefined || age.step === step);
  const [newest] = common.sort((a, b) => b.epoch - a.epoch || b.step - a.step);
  if (newest === undefined)
    throw absent(path, `${step === undefined ? "no step" : `step ${step}`} is not there for every rank`);
  return { files: saved.map((files) => files.get(newest.key)!), step: newest.step };
}

/** Epoch and step of `<prefix>-<epoch>_<step>.ckpt`: compared as numbers. */
export function ageOf(name: string): Age {
  const [, epoch = "0", step = "0"] = /-(\d{1,15})_(\d{1,15})\.ckpt$/.exec(name) ?? [];
  return { epoch: Number(epoch), step: Number(step) };
}

async function list(fileSystem: FileSystem, path: string): Promise<FolderEntry[]> {
  return fileSystem.list(path).catch((error: unknown) => {
    throw diskError(error, path, "listing");
  });
}

function absent(path: string, problem: string): OptError {
  return new OptError("MISSING", path, `${problem}.`, "Bring the folders of all ranks together.");
}

/** DeepSpeed's folders: `latest` names the newest step; a step is Universal (a folder for each parameter) or of the ranks of ZeRO. */
import type { SourceTensor } from "../../format/source";
import { isCount } from "../../layout/counts";
import type { FolderEntry } from "../../stores/file-system";
import { join } from "../../stores/path";
import { missing } from "../bytes/errors";
import { wholeTensor } from "../bytes/foreign-tensor";
import { formatReader, type ImportSource } from "../bytes/reader";
import { insideOf } from "../bytes/safe-path";
import { readBytes } from "../bytes/source";
import { isModelFile, readModelFile } from "./model-states";
import { readUniversal } from "./universal";
import { frozenOf, OPTIMIZER_FILE, readZero } from "./zero";

export const deepspeedReader = formatReader("DeepSpeed", async (opening) => {
  const { folder, entries } = await folderOfStep(opening);
  const names = entries.filter(({ kind }) => kind === "file").map(({ name }) => name);
  const models = names.filter(isModelFile).sort(byNumbers);
  const ranks = names.filter((name) => OPTIMIZER_FILE.test(name)).sort(byNumbers);
  const isUniversal = entries.some(({ name, kind }) => name === "zero" && kind === "folder");
  if (models.length === 0) throw missing(folder, "the files *_model_states.pt are not there");
  const open = (name: string) => opening.file(join(folder, name));
  // Of stage 3 each rank has a file of the model too.
  const told = models.map((name) => /^zero_pp_rank_(\d+)_/.exec(name)?.[1]).filter((rank) => rank !== undefined);
  const isWhole = told.every((rank, i) => Number(rank) === i) && (told.length === ranks.length || told.length === 0);
  if (!isUniversal && !isWhole) throw missing(folder, "the files *_model_states.pt of some ranks are not there");
  const model = await readModelFile(open, models);
  const found = isUniversal
    ? await readUniversal(opening, join(folder, "zero"), model)
    : await readZero(open, ranks, model, folder);
  const whole = Array.from(model.tensors, ([name, tensor]) => wholeTensor(name, tensor, model.file));
  const tensors: SourceTensor[] = [...whole, ...frozenOf(model, folder), ...found.tensors];
  const byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
  for (const [name, own] of model.shared) if (byName.has(own)) tensors.push({ ...byName.get(own)!, name });
  const values = { ...model.values, ...found.values };
  return { tensors, values, unreadable: model.unreadable, step: [model.values.global_steps].find(isCount) };
});

/** The folder itself, or the step in it that is asked for, or the one that `latest` names. @throws OptError MISSING, REFUSED */
async function folderOfStep(opening: ImportSource): Promise<{ folder: string; entries: readonly FolderEntry[] }> {
  const { path, options, file, list } = opening;
  const entries = await list(path);
  if (entries.some(({ name }) => isModelFile(name))) return { folder: path, entries };
  const latest = entries.find(({ name }) => /^latest(_universal)?$/.test(name));
  const named = entries.find(({ name }) => /\d+$/.exec(name)?.[0] === String(options.step));
  if (named === undefined && latest === undefined) throw missing(path, "no step is there");
  const text = async (name: string) => {
    const source = await file(join(path, name));
    return new TextDecoder().decode(await readBytes(source, 0, Math.min(source.byteLength, 4096))).trim();
  };
  const folder = insideOf(path, named?.name ?? (await text(latest!.name)), path);
  return { folder, entries: await list(folder) };
}

const byNumbers = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true });

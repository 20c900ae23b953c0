/** The folder of a parallel MindSpore run: `rank_<n>/<prefix>-<epoch>_<step>.ckpt`, and strategy files that say what is whose. */
import type { Json, SourceTensor } from "../../format/source";
import type { FolderEntry } from "../../stores/file-system";
import { join } from "../../stores/path";
import { badState, missing } from "../bytes/errors";
import { formatReader, type ImportSource } from "../bytes/reader";
import { type HeldPart, mergeParts } from "./merge-parts";
import { type Age, ageOf, readMindspore } from "./read";
import { type MindsporeLayout, readMindsporeStrategy } from "./strategy";

const RANK = /^rank_(\d+)$/;

export const mindsporeRanksReader = formatReader("MindSpore ranks", async (opening) => {
  const { path, file, options } = opening;
  const strategy = await readStrategies(opening);
  if (strategy.size === 0 && options.sourceLayout === undefined) {
    const how = 'give a source layout (--source-layout; { "*": "replicate" } where every rank holds the same)';
    const problem = "no strategy file says how the ranks' parts belong together";
    throw missing(path, problem, `Put it into this folder, as ckpt_strategy.ckpt, or ${how}.`);
  }
  const { files, step } = await filesOfStep(opening);
  const parts = new Map<string, HeldPart[]>();
  const values: Record<string, Json> = {};
  const unreadable = new Map<string, string>();
  for (const [rank, name] of files.entries()) {
    const read = await readMindspore(await file(join(path, name)), name);
    Object.assign(values, read.values);
    for (const [key, reason] of read.unreadable) unreadable.set(key, reason);
    for (const tensor of read.tensors) {
      const held = parts.get(tensor.name) ?? [];
      parts.set(tensor.name, held);
      held.push({ rank, tensor });
    }
  }
  const { sourceLayout } = options;
  const context = { path, ranks: files.length, strategy, names: parts, ...(sourceLayout && { sourceLayout }) };
  const tensors: SourceTensor[] = [];
  for (const [name, held] of parts) tensors.push(mergeParts(name, held, context));
  return { step, tensors, values, unreadable };
});

/** Every strategy file of the folder or its `strategy` folder, together: stages of a pipeline have one each. @throws OptError BAD_STATE */
async function readStrategies(opening: ImportSource): Promise<Map<string, MindsporeLayout>> {
  const { path, file } = opening;
  const entries = await opening.list(path);
  const isFile = ({ kind }: FolderEntry): boolean => kind === "file";
  const found = entries.filter((entry) => isFile(entry) && /strategy.*\.ckpt$/.test(entry.name));
  const paths = found.map(({ name }) => join(path, name));
  if (entries.some(({ name, kind }) => kind === "folder" && name === "strategy")) {
    const folder = join(path, "strategy");
    const inner = (await opening.list(folder)).filter((entry) => isFile(entry) && entry.name.endsWith(".ckpt"));
    paths.push(...inner.map(({ name }) => join(folder, name)));
  }
  const layouts = new Map<string, MindsporeLayout>();
  for (const where of paths.sort()) {
    for (const [name, layout] of await readMindsporeStrategy(await file(where))) {
      const known = layouts.get(name);
      if (known !== undefined && JSON.stringify(known) !== JSON.stringify(layout)) {
        const problem = `it splits ${JSON.stringify(name)} in another way than the strategy files before it`;
        throw badState(where, problem, "Keep the files of one run only.");
      }
      layouts.set(name, layout);
    }
  }
  return layouts;
}

/** A file of each rank, in the order of ranks: all of one epoch and step, the newest or the one asked for. @throws OptError MISSING */
async function filesOfStep(opening: ImportSource): Promise<{ files: string[]; step: number }> {
  const { path, options } = opening;
  const { step } = options;
  const folders = (await opening.list(path)).filter(({ name, kind }) => kind === "folder" && RANK.test(name));
  const rankOf = (name: string): number => Number(RANK.exec(name)![1]);
  const ranks = folders.map(({ name }) => name).sort((a, b) => rankOf(a) - rankOf(b));
  const absent = ranks.findIndex((name, i) => rankOf(name) !== i);
  if (absent >= 0) throw incomplete(path, `rank_${absent} is not there`);
  const saved: Map<string, string>[] = [];
  for (const rank of ranks) {
    const files = (await opening.list(join(path, rank))).filter(({ kind, name }) => kind === "file" && isCkpt(name));
    saved.push(
      new Map(files.map(({ name }) => [JSON.stringify(ageOf(name) ?? { epoch: 0, step: 0 }), join(rank, name)])),
    );
  }
  const common = [...(saved[0]?.keys() ?? [])]
    .filter((age) => saved.every((files) => files.has(age)))
    .map((key) => ({ key, ...(JSON.parse(key) as Age) }))
    .filter((age) => step === undefined || age.step === step);
  const [newest] = common.sort((a, b) => b.epoch - a.epoch || b.step - a.step);
  const wanted = step === undefined ? "no step" : `step ${step}`;
  if (newest === undefined) throw incomplete(path, `${wanted} is not there for every rank`);
  return { files: saved.map((files) => files.get(newest.key)!), step: newest.step };
}

const isCkpt = (name: string): boolean => name.endsWith(".ckpt");

const incomplete = (path: string, problem: string) =>
  missing(path, problem, "Bring the folders of all ranks together.");

/** The folder of a parallel MindSpore run: `rank_<n>/<prefix>-<epoch>_<step>.ckpt`, and a strategy file that says what is whose. */
import { join } from "node:path";
import { OptError } from "@opt/core";
import type { Importer, Json, SourceBox, SourceTensor } from "../../format/source";
import { FilePool } from "../../stores/file-pool";
import { diskError, type FileSystem, type FolderEntry } from "../../stores/file-system";
import { pooledFile } from "../bytes/byte-source";
import { readMindspore } from "./mindspore";
import { type MindsporeLayout, mindsporePart, readMindsporeStrategy } from "./strategy";

const RANK = /^rank_(\d+)$/;

export const mindsporeRanksImporter: Importer = {
  format: "MindSpore ranks",
  recognises: ({ entries }) => entries.some(({ name, kind }) => kind === "folder" && RANK.test(name)),
  async open(path, fileSystem) {
    const files = new FilePool(fileSystem, "read");
    try {
      const layouts = await readStrategies(path, fileSystem, files);
      const ranks = await newestFiles(path, fileSystem);
      const merged = new Map<string, Merged>();
      const values: Record<string, Json> = {};
      for (const [rank, file] of ranks.entries()) {
        const part = await readMindspore(await pooledFile(files, join(path, file)), file);
        Object.assign(values, part.values);
        for (const tensor of part.tensors) {
          const layout = layoutOf(tensor.name, layouts);
          checkDevices(layout, ranks.length, tensor.name, path);
          addPart(merged, tensor, layout, rank, path);
        }
      }
      const tensors = new Map([...merged.values()].map((whole) => [whole.name, finished(whole)]));
      return { format: this.format, path, tensors, values, close: () => files.close() };
    } catch (error) {
      await files.close();
      throw error;
    }
  },
};

type Merged = Omit<SourceTensor, "boxes"> & { readonly boxes: Map<string, SourceBox> };

function finished({ boxes, ...tensor }: Merged): SourceTensor {
  return { ...tensor, boxes: [...boxes.values()] };
}

/** A state follows its parameter where the strategy does not name it: `moments.fc.weight` is split as `fc.weight` is. */
function layoutOf(name: string, layouts: ReadonlyMap<string, MindsporeLayout>): MindsporeLayout | undefined {
  return layouts.get(name) ?? layouts.get(name.slice(name.indexOf(".") + 1));
}

function checkDevices(layout: MindsporeLayout | undefined, ranks: number, name: string, path: string): void {
  const devices = layout?.deviceMatrix.reduce((product, size) => product * size, 1) ?? ranks;
  if (devices === ranks) return;
  throw new OptError(
    "MISSING",
    path,
    `${JSON.stringify(name)} was split over ${devices} devices, got the files of ${ranks} ranks.`,
    "Bring the folders of all ranks together; stages of a pipeline are merged one by one.",
  );
}

function addPart(
  merged: Map<string, Merged>,
  tensor: SourceTensor,
  layout: MindsporeLayout | undefined,
  rank: number,
  path: string,
): void {
  const { name, dtype } = tensor;
  const local = tensor.shape;
  const { parts, index } =
    layout === undefined
      ? { parts: local.map(() => 1), index: local.map(() => 0) }
      : mindsporePart(layout, rank, local.length);
  const shape = local.map((length, d) => length * parts[d]!);
  const whole = merged.get(name) ?? { name, dtype, shape, boxes: new Map<string, SourceBox>() };
  if (whole.dtype !== dtype || `${whole.shape}` !== `${shape}`) {
    throw new OptError(
      "BAD_STATE",
      path,
      `rank ${rank} holds a part of ${name}, ${dtype} [${shape}], other ranks of ${whole.dtype} [${whole.shape}].`,
      "The files are of different runs, or the strategy is another run's.",
    );
  }
  const offset = local.map((length, d) => length * index[d]!);
  // Replicas lie at the same place: the first rank's is taken.
  const place = offset.join(",");
  if (!whole.boxes.has(place)) whole.boxes.set(place, { ...tensor.boxes[0]!, offset });
  merged.set(name, whole);
}

/** Every strategy file of the folder or its `strategy` folder, together. Throws MISSING where there is none. */
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
  if (found.length === 0) {
    throw new OptError(
      "MISSING",
      path,
      "no strategy file says how the ranks' parts belong together.",
      "Put it into this folder, as ckpt_strategy.ckpt.",
    );
  }
  const layouts = new Map<string, MindsporeLayout>();
  for (const file of found.sort()) {
    for (const [name, layout] of await readMindsporeStrategy(await pooledFile(files, file))) layouts.set(name, layout);
  }
  return layouts;
}

function isStrategy({ name, kind }: FolderEntry): boolean {
  return kind === "file" && /strategy.*\.ckpt$/.test(name);
}

/** The newest file of each rank, in the order of ranks: all of one epoch and step. Throws MISSING. */
async function newestFiles(path: string, fileSystem: FileSystem): Promise<string[]> {
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
    saved.push(new Map(checkpoints.map((file) => [ageOf(file).join("_"), join(name, file)])));
  }
  const common = [...(saved[0]?.keys() ?? [])].filter((age) => saved.every((files) => files.has(age)));
  const [newest] = common.sort((a, b) => compareAges(b, a));
  if (newest === undefined) throw absent(path, "no step is there for every rank");
  return saved.map((files) => files.get(newest)!);
}

/** Epoch and step of `<prefix>-<epoch>_<step>.ckpt`: compared as numbers. */
function ageOf(name: string): [number, number] {
  const [, epoch = "0", step = "0"] = /-(\d+)_(\d+)\.ckpt$/.exec(name) ?? [];
  return [Number(epoch), Number(step)];
}

function compareAges(a: string, b: string): number {
  const [left, right] = [a.split("_").map(Number), b.split("_").map(Number)];
  return left[0]! - right[0]! || left[1]! - right[1]!;
}

async function list(fileSystem: FileSystem, path: string): Promise<FolderEntry[]> {
  return fileSystem.list(path).catch((error: unknown) => {
    throw diskError(error, path, "listing");
  });
}

function absent(path: string, problem: string): OptError {
  return new OptError("MISSING", path, `${problem}.`, "Bring the folders of all ranks together.");
}

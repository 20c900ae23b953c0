/** Orbax, the checkpoints of JAX: a folder of zarr arrays, by default in OCDBT; folders of items; folders of steps. */
import type { Json, SourceTensor } from "../../format/source";
import { isCount } from "../../layout/counts";
import type { FolderEntry } from "../../stores/file-system";
import { basename, dirname, join } from "../../stores/path";
import { missing, unsupported } from "../bytes/errors";
import { isObject, parseJson } from "../bytes/json";
import { formatReader, type ImportSource } from "../bytes/reader";
import { insideOf } from "../bytes/safe-path";
import { type ByteSource, readBytes } from "../bytes/source";
import { scalarOf } from "../names/scalars";
import { readOcdbt } from "./ocdbt";
import { isOrbax, OCDBT_MANIFEST, ORBAX_TREE } from "./signature";
import { readZarr, ZARR_FILE } from "./zarr";
import { UnpackedPieces } from "./zstd";

const STEP = /^(?:.*[_-])?(\d+)$/;
const LONGEST_JSON = 400 * 1024 * 1024;

export const orbaxReader = formatReader("Orbax", async (opening) => {
  const { path } = opening;
  const folder = await folderOfStep(opening);
  if (folder.endsWith(".orbax-checkpoint-tmp")) throw unfinished(folder);
  const entries = await opening.list(folder);
  const found: Found = { tensors: [], values: {}, unreadable: new Map() };
  if (isTree(entries)) await readTree(opening, folder, entries, "", found);
  else await readItems(opening, folder, entries, found);
  const written = ["step", "state.step"].map((name) => found.values[name]).find(isCount);
  const [own, outer] = [folder, dirname(folder)].map((one) => STEP.exec(basename(one))?.[1]);
  // In a folder of steps, and of a number alone, the name is the step; other names may end in a number for another reason.
  const isNamed = folder !== path || /^\d+$/.test(basename(folder));
  const named = isNamed || written === undefined ? (own ?? outer) : undefined;
  return { ...found, step: named === undefined ? written : Number(named) };
});

interface Found {
  readonly tensors: SourceTensor[];
  readonly values: Record<string, Json>;
  readonly unreadable: Map<string, string>;
}

/** The folder itself, or of a folder of steps the one asked for or the last. @throws OptError MISSING */
async function folderOfStep(opening: ImportSource): Promise<string> {
  const { path, options } = opening;
  const entries = await opening.list(path);
  if (isOrbax(entries)) return path;
  const steps = entries
    .filter(({ kind, name }) => kind === "folder" && STEP.test(name))
    .map(({ name }) => ({ name, step: Number(STEP.exec(name)![1]) }))
    .sort((a, b) => a.step - b.step);
  const chosen = steps.findLast(({ step }) => options.step === undefined || step === options.step);
  if (chosen !== undefined) return join(path, chosen.name);
  throw missing(path, `step ${options.step} is not there`, `It holds ${steps.map(({ step }) => step).join(", ")}.`);
}

const isTree = (entries: readonly FolderEntry[]): boolean =>
  entries.some(({ name, kind }) => kind === "file" && (name === ORBAX_TREE || name === OCDBT_MANIFEST));

/** A step of several items, each in a folder of its own; the names in `default` have no prefix. */
async function readItems(opening: ImportSource, folder: string, entries: readonly FolderEntry[], found: Found) {
  for (const { name, kind } of entries) {
    if (kind !== "folder") continue;
    const where = join(folder, name);
    const inner = await opening.list(where);
    if (isTree(inner)) await readTree(opening, where, inner, name === "default" ? "" : `${name}.`, found);
    else if (inner.some((entry) => entry.name === "metadata")) {
      found.values[name] = (await readJson(opening, join(where, "metadata"))) as Json;
    }
  }
  if (found.tensors.length > 0 || found.unreadable.size > 0) return;
  if (!entries.some(({ name }) => name === "commit_success.txt")) throw unfinished(folder);
  throw unsupported(folder, "no item of this Orbax checkpoint holds arrays", "Give the folder of a pytree.");
}

async function readTree(
  opening: ImportSource,
  folder: string,
  entries: readonly FolderEntry[],
  prefix: string,
  { tensors, values, unreadable }: Found,
): Promise<void> {
  const has = (file: string): boolean => entries.some(({ name }) => name === file);
  const metadata = has(ORBAX_TREE) ? await readJson(opening, join(folder, ORBAX_TREE)) : {};
  const leaves = leavesOf(metadata.tree_metadata);
  if (metadata.use_ocdbt === true && !has(OCDBT_MANIFEST)) throw unfinished(folder);
  const files = has(OCDBT_MANIFEST)
    ? await readOcdbt(folder, opening.file)
    : await readFolder(opening, folder, entries);
  const isSparse = metadata.store_array_data_equal_to_fill_value !== true;
  const store = { path: folder, values: files, pieces: new UnpackedPieces(), isSparse };
  const arrays = new Set<string>();
  for (const key of files.keys()) {
    const [, name, file] = ZARR_FILE.exec(key) ?? [];
    if (name === undefined) continue;
    arrays.add(name);
    try {
      const tensor = { ...(await readZarr(name, file!, store)), name: prefix + name };
      const number = leaves.get(name) === "scalar" || name === "step" ? await scalarOf(tensor) : undefined;
      if (number !== undefined && Number.isFinite(number)) values[tensor.name] = number;
      if (leaves.get(name) !== "scalar" || number === undefined) tensors.push(tensor);
    } catch (error) {
      if ((error as { code?: string }).code !== "UNSUPPORTED") throw error;
      unreadable.set(prefix + name, (error as Error).message);
    }
  }
  const strings = has("_strings.json") ? await readJson(opening, join(folder, "_strings.json")) : {};
  for (const [name, text] of Object.entries(strings)) values[prefix + name] = text!;
  const gone = [...leaves.keys()].find((name) => !arrays.has(name) && strings[name] === undefined);
  if (gone !== undefined) throw missing(folder, `${JSON.stringify(gone)} is not there`);
}

/** The names of arrays and their kinds; `None` and empty containers are stored nowhere. */
function leavesOf(tree: Json | undefined): Map<string, Json | undefined> {
  const leaves = new Map<string, Json | undefined>();
  for (const leaf of isObject(tree) ? Object.values(tree) : []) {
    const { key_metadata: keys, value_metadata: value } = isObject(leaf) ? leaf : {};
    if (!Array.isArray(keys) || !isObject(value) || value.skip_deserialize === true) continue;
    leaves.set(keys.map((key) => String(isObject(key) ? key.key : key)).join("."), value.value_type);
  }
  return leaves;
}

/** The files of a tree without OCDBT by their paths in its folder. */
async function readFolder(opening: ImportSource, folder: string, entries: readonly FolderEntry[], above = "") {
  const files = new Map<string, ByteSource>();
  for (const { name, kind } of entries) {
    const where = insideOf(folder, name, folder);
    if (kind === "file" && above !== "") files.set(above + name, await opening.file(where));
    if (kind !== "folder" || above.length > 4096) continue;
    const inner = await readFolder(opening, where, await opening.list(where), `${above}${name}/`);
    for (const [key, file] of inner) files.set(key, file);
  }
  return files;
}

async function readJson({ file }: ImportSource, path: string) {
  const source = await file(path);
  return parseJson(await readBytes(source, 0, Math.min(source.byteLength, LONGEST_JSON)), path);
}

const unfinished = (folder: string) =>
  missing(folder, "this Orbax checkpoint was never saved whole", "Use another step.");

/** Writes the files of a parallel MindSpore run: `rank_<n>/<prefix>-<epoch>_<step>.ckpt` for each rank, and the strategy that they follow. */

import { check } from "@opt/core";
import type { SourceTensor, TensorSource } from "../../format/source";
import { unsupported } from "../../formats/bytes/errors";
import { type MindsporeLayout, mindsporeStrategy } from "../../formats/mindspore/strategy";
import { mindsporeName } from "../../formats/names/states";
import { entryFor, type Layout, layoutFor } from "../../layout/layout";
import { boxesOfRank } from "../../layout/placements";
import { outputOf } from "../../platform/local";
import { FilePool } from "../../stores/file-pool";
import { type FileSystem, type OpenFile, writeBytes } from "../../stores/file-system";
import { join } from "../../stores/path";
import { writeFolder } from "../files/write-whole";
import { type MindsporeOptions, mindsporeTypeOf, writeMindsporeFiles } from "./write";

export interface MindsporeRanksOptions extends MindsporeOptions {
  /** How many ranks will load it; may be left out where a layout says. */
  readonly ranks?: number;
  /** Even splits only, one mesh axis or neighbouring ones for a dimension. Without it, first dimensions that divide are split over all ranks. */
  readonly layout?: Layout;
  /** Part `i` of `n` of the ranks, counted from 1: `n` processes write a share each into one folder. */
  readonly job?: readonly [i: number, n: number];
}

/**
 * Writes `source` for a number of ranks, and the strategy.
 *
 * @throws OptError UNSUPPORTED for uneven parts, BAD_ARGUMENT, MISSING for gaps, IO
 */
export async function writeMindsporeRanks(
  source: TensorSource,
  folder: string,
  options: MindsporeRanksOptions,
): Promise<void> {
  const tensors = [...source.tensors.values()];
  for (const tensor of tensors) mindsporeTypeOf(tensor);
  const { layout, ranks } = layoutFor("convertCheckpoint", options, (count) => evenLayout(count, tensors));
  const strategies = new Map(
    tensors.map((tensor) => [mindsporeName(tensor.name, tensor.follows), strategyOf(layout, tensor)]),
  );
  const writing = { source, layout, options };
  if (options.job === undefined) {
    const all = Array.from({ length: ranks }, (_, rank) => rank);
    await writeFolder(folder, options, async (temporary, fileSystem) => {
      await writeStrategy(fileSystem, join(temporary, "strategy"), strategies);
      await writeRanks(writing, all, (rank) => join(temporary, `rank_${rank}`), fileSystem);
    });
    return;
  }
  const fileSystem = outputOf(folder, options.fileSystem);
  const mine = ranksOfJob(options.job, ranks);
  await fileSystem.makeFolder(folder);
  if (options.job[0] === 1) {
    await writeFolder(join(folder, "strategy"), options, (temporary) =>
      writeStrategy(fileSystem, temporary, strategies),
    );
  }
  for (const rank of mine) {
    await writeFolder(join(folder, `rank_${rank}`), options, (temporary) =>
      writeRanks(writing, [rank], () => temporary, fileSystem),
    );
  }
}

/** A share of the ranks: the first jobs have one more where they do not divide. @throws OptError BAD_ARGUMENT */
export function ranksOfJob([i, n]: readonly [number, number], ranks: number): number[] {
  const whole = Number.isSafeInteger(i) && Number.isSafeInteger(n) && i >= 1 && i <= n;
  check(
    whole,
    "BAD_ARGUMENT",
    "job",
    () => `must be i of n with 1 <= i <= n, got ${i} of ${n}.`,
    "For example [1, 4].",
  );
  const all = Array.from({ length: ranks }, (_, rank) => rank);
  return all.slice(Math.ceil(((i - 1) * ranks) / n), Math.ceil((i * ranks) / n));
}

interface RankExport {
  readonly source: TensorSource;
  readonly layout: Layout;
  readonly options: MindsporeRanksOptions;
}

type Output = Pick<OpenFile, "write" | "finish">;

/** The files of some ranks, all in one pass over the tensors. */
async function writeRanks(
  { source, layout, options }: RankExport,
  ranks: readonly number[],
  folderOf: (rank: number) => string,
  fileSystem: FileSystem,
): Promise<void> {
  const opened: { file: Output; folder: string }[] = [];
  const pool = new FilePool(fileSystem, "update");
  try {
    for (const rank of ranks) {
      const folder = folderOf(rank);
      await fileSystem.makeFolder(folder);
      const file = await created(fileSystem, join(folder, `opt-0_${source.step ?? 0}.ckpt`), pool);
      opened.push({ file, folder });
    }
    const boxOf = (tensor: SourceTensor, i: number) => boxesOfRank(layout, tensor, ranks[i]!)[0]!;
    const files = opened.map(({ file }) => file);
    await writeMindsporeFiles(source, files, boxOf, options);
    for (const { file, folder } of opened) {
      await file.finish();
      await fileSystem.syncFolder(folder);
    }
  } finally {
    await pool.close();
  }
}

/** A new file that is open only while it is written to: of hundreds of ranks not all can be. */
async function created(fileSystem: FileSystem, path: string, pool: FilePool): Promise<Output> {
  await (await fileSystem.open(path, "create")).close();
  return {
    write: (data, position) => pool.use(path, (file) => file.write(data, position)),
    finish: () => pool.use(path, (file) => file.finish()),
  };
}

async function writeStrategy(fileSystem: FileSystem, folder: string, strategies: ReadonlyMap<string, MindsporeLayout>) {
  await fileSystem.makeFolder(folder);
  await writeBytes(fileSystem, join(folder, "ckpt_strategy.ckpt"), mindsporeStrategy(strategies));
  await fileSystem.syncFolder(folder);
}

/** First dimensions that the number of ranks divides are split, everything else is whole on every rank. */
function evenLayout(ranks: number, tensors: readonly SourceTensor[]): Layout {
  const divides = ({ shape }: SourceTensor): boolean => shape.length > 0 && shape[0]! > 0 && shape[0]! % ranks === 0;
  const split = Object.fromEntries(tensors.filter(divides).map(({ name }) => [name, ["rank"]]));
  return { mesh: { shape: [ranks], axes: ["rank"] }, tensors: { ...split, "*": "replicate" } };
}

/**
 * A tensor's layout in MindSpore's words, where one axis splits a dimension: neighbouring axes of the mesh become one. The last axis
 * of dimension 0 may be any, as the ranks of optimizer sharding.
 *
 * @throws OptError UNSUPPORTED for uneven parts, and other dimensions that several axes split
 */
function strategyOf(layout: Layout, tensor: SourceTensor): MindsporeLayout {
  const { name, shape } = tensor;
  const entry = entryFor(layout, tensor);
  const reject = (problem: string): never => {
    const advice = "MindSpore splits a dimension evenly, over one mesh axis or neighbouring ones.";
    throw unsupported(`tensor ${JSON.stringify(name)}`, problem, advice);
  };
  if (entry !== "replicate" && "boxes" in entry) reject("its layout lists boxes");
  const spec = entry === "replicate" || "boxes" in entry ? [] : "split" in entry ? entry.split : entry;
  const { axes, shape: mesh } = layout.mesh;
  let [shardStep, shardSize] = [0, 0];
  const runs = shape.map((length, d) => {
    const split = spec[d] ?? null;
    const names = split === null ? [] : [split].flat();
    const run = names.map((name) => axes.indexOf(name));
    const parts = productOf(run.map((axis) => mesh[axis]!));
    if (length % parts !== 0) reject(`dimension ${d} of ${length} is not divided by ${parts} ranks`);
    const isRun = () => run.every((axis, i) => i === 0 || axis === run[i - 1]! + 1);
    if (d === 0 && !isRun()) {
      const last = run.pop()!;
      [shardStep, shardSize] = [productOf(mesh.slice(last + 1)), mesh[last]!];
    }
    return isRun() ? run : reject(`dimension ${d} is split by ${names.join(" and ")}`);
  });
  const isJoined = (axis: number) => runs.some((run) => run.indexOf(axis) > 0);
  const firsts = [...mesh.keys()].filter((axis) => !isJoined(axis));
  const deviceMatrix = firsts.map((axis, i) => productOf(mesh.slice(axis, firsts[i + 1])));
  const tensorMap = runs.map(([first]) => (first === undefined ? -1 : firsts.length - 1 - firsts.indexOf(first)));
  return { deviceMatrix, tensorMap, shardStep, shardSize };
}

const productOf = (numbers: readonly number[]): number => numbers.reduce((product, n) => product * n, 1);

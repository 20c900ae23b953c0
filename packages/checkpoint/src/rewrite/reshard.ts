/** Re-slicing: a checkpoint for another number of ranks or another layout, without ever holding a whole tensor. */
import { checkOptions } from "@opt/core";
import { shardName } from "../format/shard";
import type { TensorSource } from "../format/source";
import { withRole } from "../format/tensors";
import { Verification } from "../format/verification";
import { checkPatterns, defaultLayout, type Layout, layoutFor } from "../layout/layout";
import { NAMING_OPTIONS, type NamingOptions, useNamed } from "../naming/named";
import { outputOf } from "../platform/local";
import { OPEN_OPTIONS, type OpenOptions } from "../read/open";
import { SELECTION_OPTIONS, type Selection, selectTensors } from "../read/select";
import { assembleManifest, type RankReport } from "../save/shards/assemble";
import { planSave } from "../save/shards/plan";
import { newAttempt } from "../save/step/owner";
import { StepFolder } from "../save/step/step-folder";
import { checkedPath, diskError } from "../stores/file-system";
import { OUTPUT_OPTIONS, type OutputOptions, streamFiles } from "./stream-files";

export interface ReshardOptions extends Selection, OpenOptions, OutputOptions, NamingOptions {
  /** How many ranks will load it; may be left out where a layout says. */
  readonly ranks?: number;
  /** Without it every tensor is split along its first dimension. */
  readonly layout?: Layout;
  readonly overwrite?: boolean;
  readonly sha256?: boolean;
}

export interface ReshardResult {
  /** The folder of the step. */
  readonly path: string;
  readonly step: number;
  readonly ranks: number;
  /** Tensors of which some bytes were copied without comparing a checksum: the source has none, or `verify` is false. */
  readonly unverified: readonly string[];
}

/** See operations.ts. */
export async function reshardCheckpoint(
  path: string,
  destination: string,
  options: ReshardOptions,
): Promise<ReshardResult> {
  checkedPath("reshardCheckpoint", path);
  checkedPath("reshardCheckpoint", destination);
  checkOptions("reshardCheckpoint", options, {
    ...OPEN_OPTIONS,
    ...SELECTION_OPTIONS,
    ...OUTPUT_OPTIONS,
    ...NAMING_OPTIONS,
    ranks: "number",
    layout: "object",
    overwrite: "boolean",
    sha256: "boolean",
  });
  return useNamed(path, options, (source, rest) => reshardSource(source, destination, rest));
}

export async function reshardSource(
  source: TensorSource,
  destination: string,
  options: ReshardOptions,
): Promise<ReshardResult> {
  const { layout, ranks } = layoutFor("reshardCheckpoint", options, defaultLayout);
  const verification = new Verification();
  const tensors = selectTensors(source, options, verification).map((tensor) => withRole(tensor, source.tensors));
  checkPatterns(layout, source.tensors.values());
  const plan = planSave(layout, tensors);
  const fileSystem = outputOf(destination, options.outFileSystem ?? options.fileSystem);
  const overwrite = options.overwrite ?? false;
  const step = source.step ?? 0;
  const folder = await StepFolder.begin(fileSystem, destination, step, newAttempt(), { overwrite });
  try {
    const { path, fileTag } = folder;
    const ranked = Array.from({ length: ranks }, (_, rank) => [rank, plan.boxesOf(rank)] as const).filter(
      ([, boxes]) => boxes.length > 0,
    );
    const reports = Array.from({ length: ranks }, (): RankReport => ({ checksums: [], replicas: [] }));
    const files = ranked.map(([rank, boxes]) => ({ folder: path, name: shardName(rank, fileTag), boxes }));
    const written = await streamFiles(fileSystem, files, options);
    for (const [i, [rank]] of ranked.entries()) reports[rank] = { ...written[i]!, replicas: [] };
    const whole = { step, attempt: folder.attempt, mesh: layout.mesh, values: source.values };
    await folder.commit(assembleManifest(plan, reports, whole));
  } catch (error) {
    await folder.abandon();
    throw diskError(error, folder.finalPath, "re-slicing");
  }
  const unverified = options.verify === false ? tensors.map(({ name }) => name) : verification.unverified();
  return { path: folder.finalPath, step, ranks, unverified };
}

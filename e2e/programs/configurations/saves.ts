/** Checkpoints of a run by hand, on any ranks and in other formats. */
import { rmSync } from "node:fs";
import { convertCheckpoint, loadCheckpoint, optimizerContents, optimizerState, saveCheckpoint } from "@opt/checkpoint";
import type { OptimizerState, Tensor } from "@opt/core";
import { FullyShardedDataParallel, layoutOf, ShardedOptimizer } from "@opt/parallel";
import type { Configuration } from "@opt/testkit/configurations";
import type { Parts, Place } from "./parts";

interface Extras {
  readonly averages: number | null;
  readonly scaler: object | null;
  readonly schedule: object | null;
  readonly loader: object | null;
}

/** All that the run has by now, of this rank. */
export async function contentsOf(parts: Parts, step: number, loader: object | null) {
  const { module, parallel, optimizer, ema, scaler, schedule } = parts;
  const model = parallel instanceof FullyShardedDataParallel ? parallel.stateDict() : module.stateDict();
  const state =
    optimizer instanceof ShardedOptimizer
      ? await optimizer.contents()
      : optimizerContents(optimizer.stateDict() as OptimizerState);
  const { n_averaged = null, ...averages } = ema?.stateDict() ?? {};
  const averaged = Object.entries(averages).map(([name, tensor]) => [
    `ema.${name}`,
    { tensor: tensor as Tensor, role: "state" as const, follows: name.slice("module.".length) },
  ]);
  const extras = {
    averages: n_averaged as number | null,
    scaler: scaler?.stateDict() ?? null,
    schedule: schedule?.stateDict() ?? null,
    loader,
  } satisfies Extras;
  return {
    step,
    tensors: { ...model, ...state.tensors, ...Object.fromEntries(averaged) },
    values: { ...state.values, extras },
  };
}

function layoutFor({ module, parallel }: Parts, { communicator, grid }: Place) {
  if (grid) return layoutOf(module, grid);
  if (parallel instanceof FullyShardedDataParallel) return parallel.layout;
  return { mesh: { shape: [communicator.size], axes: ["rank"] }, tensors: { "*": "replicate" as const } };
}

/** All ranks of the place save together; the first one makes another format of it. */
export async function save(
  folder: string,
  parts: Parts,
  { step, loader, through }: { step: number; loader: object | null; through: Configuration["through"] },
  place: Place | undefined,
): Promise<void> {
  const ranks = place && { communicator: place.communicator, layout: layoutFor(parts, place), checkReplicas: true };
  const { values, ...own } = await contentsOf(parts, step, loader);
  const isFirst = (place?.communicator.rank ?? 0) === 0; // it alone knows where the loader stands
  await saveCheckpoint(`${folder}/run`, isFirst ? { ...own, values } : own, { ...ranks, overwrite: true });
  if (through === undefined || through === "checkpoint" || !isFirst) return;
  // There and back. Averages are no part of what other systems load.
  const exclude = parts.ema ? ["ema.*"] : [];
  await convertCheckpoint(`${folder}/run`, `${folder}/other.${through}`, { to: through, overwrite: true, exclude });
  await convertCheckpoint(`${folder}/other.${through}`, `${folder}/back`, { to: "checkpoint", overwrite: true });
}

/** Goes on from it. Returns where the loader stood. */
export async function load(
  folder: string,
  parts: Parts,
  through: Configuration["through"],
  place: Place | undefined,
): Promise<object | null> {
  const { module, parallel, optimizer, ema, scaler, schedule } = parts;
  const layout = place && layoutFor(parts, place);
  const own = layout && { layout, rank: place.communicator.rank };
  const run = await loadCheckpoint(`${folder}/run`, own);
  const isBack = through !== undefined && through !== "checkpoint";
  const { tensors, values } = isBack ? await loadCheckpoint(`${folder}/back`, own) : run;
  const extras = run.values.extras as unknown as Extras;
  if (parallel instanceof FullyShardedDataParallel) parallel.loadStateDict(tensors);
  else module.loadStateDict(Object.fromEntries(Object.keys(module.stateDict()).map((name) => [name, tensors[name]!])));
  optimizer.loadStateDict(optimizerState({ tensors, values }));
  const averages = Object.entries(run.tensors).filter(([name]) => name.startsWith("ema."));
  ema?.loadStateDict({
    n_averaged: extras.averages,
    ...Object.fromEntries(averages.map(([name, tensor]) => [name.slice("ema.".length), tensor])),
  });
  if (extras.scaler) scaler?.loadStateDict(extras.scaler);
  if (extras.schedule) schedule?.loadStateDict(extras.schedule);
  for (const each of [tensors, run.tensors].flatMap((all) => Object.values(all))) each.dispose();
  return extras.loader;
}

export const remove = (folder: string): void => rmSync(folder, { recursive: true, force: true });

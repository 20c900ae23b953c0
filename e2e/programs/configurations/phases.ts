/** A phase of a run on this process: from the start or a save to its end, which it saves. */
import "@opt/kernels-cpu";
import { writeFileSync } from "node:fs";
import { init } from "@opt/core";
import { enableQ8, enableStochasticRounding } from "@opt/kernels-wasm";
import * as optim from "@opt/optim";
import { type Configuration, isFit, ranksOf, stepsOf } from "@opt/testkit/configurations";
import type { Callback } from "@opt/train";
import { type Batch, batchSizeOf, loaderOf } from "./batches";
import { trainByFit } from "./by-fit";
import { ByHand } from "./by-hand";
import { type Optimizers, type Parts, type Place, partsOf } from "./parts";
import { load, save } from "./saves";

enableStochasticRounding();
enableQ8();
export const optimizers = optim as unknown as Optimizers;

/** In the folder of a run, after a kill. */
export const KILLED = "killed";

export interface Train {
  readonly one: Configuration;
  /** Of the phase. */
  readonly index: number;
  /** Undefined for one process. */
  readonly place: Place | undefined;
  /** Of saves. */
  readonly folder: string;
  /** Called after each step. */
  readonly stepped: () => void;
  /** Of `fit`. */
  readonly callbacks: readonly Callback[];
}

/** Returns the losses of this rank, by steps. */
export async function train({ one, index, place, folder, ...hooks }: Train): Promise<string[][]> {
  const phase = one.phases[index]!;
  await init(phase.device);
  const data = place && (place.grid?.axis("data") ?? place.communicator);
  const resumes = index > 0 && one.phases.every(isFit) && (one.through ?? "checkpoint") === "checkpoint";
  // `fit` divides a loader that stands at its start, and makes a replica of its own.
  const isDivided = !isFit(phase) || (index > 0 && !resumes) || one.uneven || one.seed % 2 === 0;
  const parts = partsOf(one, phase, place, optimizers, isDivided);
  const whole = loaderOf(one, batchSizeOf(phase));
  const loader = data && isDivided ? whole.shard(data, { even: !one.uneven }) : whole;
  if (index > 0 && !resumes) loader.loadStateDict((await load(folder, parts, one.through, place))!);
  const kill = () => {
    if ((place?.communicator.rank ?? 0) !== one.killed! % ranksOf(phase)) return;
    writeFileSync(`${folder}/${KILLED}`, "");
    process.kill(process.pid, "SIGKILL");
  };
  const trained = isFit(phase)
    ? await trainByFit({
        one,
        index,
        parts,
        loader,
        communicator: data,
        folder: `${folder}/fit`,
        resumes,
        kill,
        ...hooks,
        isWhole: !isDivided,
      })
    : await trainByHand(one, index, parts, loader, data?.rank ?? 0, hooks.stepped);
  const isLast = index === one.phases.length - 1;
  const at = {
    step: isLast ? stepsOf(one) : one.break!,
    loader: trained.state,
    through: isLast ? undefined : one.through,
  };
  await save(folder, parts, at, place);
  parts.parallel?.dispose();
  return trained.losses;
}

interface Stateful {
  stateDict(): object;
}

async function trainByHand(
  one: Configuration,
  index: number,
  parts: Parts,
  loader: Iterable<Batch> & Stateful,
  rank: number,
  stepped: () => void,
) {
  const { way, accumulate } = one.phases[index]!;
  const hand = new ByHand(one, parts, way === "compiled", accumulate);
  const begin = index > 0 ? one.break! : 0;
  const end = index < one.phases.length - 1 ? one.break! : stepsOf(one);
  const losses: string[][] = [];
  let state = loader.stateDict();
  while (begin + losses.length < end) {
    const window: Batch[] = [];
    let isInEpoch = false;
    for (const batch of loader) {
      isInEpoch = begin + losses.length === end;
      if (isInEpoch) break;
      window.push(batch.map((each) => each.clone()) as unknown as Batch);
      if (window.length < accumulate) continue;
      losses.push(await hand.step(window.splice(0), begin + losses.length, rank));
      stepped();
      state = loader.stateDict();
    }
    if (!isInEpoch) state = loader.stateDict();
  }
  return { losses, state };
}

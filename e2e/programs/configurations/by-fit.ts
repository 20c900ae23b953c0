/** A phase by `fit`: its own checkpoints where the phase before was one of `fit`, too. */
import { manualSeed } from "@opt/core";
import type { DataLoader } from "@opt/data";
import type { Module } from "@opt/nn";
import type { Communicator, DataParallel } from "@opt/parallel";
import { type Configuration, EPOCHS, PLANTED, stepsOf } from "@opt/testkit/configurations";
import { type Callback, checkpoints, fit } from "@opt/train";
import { type Batch, batchSizeOf, loaderOf } from "./batches";
import { forward, seedOf } from "./by-hand";
import type { Parts } from "./parts";

export interface FitPhase {
  readonly one: Configuration;
  readonly index: number;
  readonly parts: Parts;
  readonly loader: DataLoader<unknown, Batch>;
  /** The loader is that of all ranks. */
  readonly isWhole: boolean;
  readonly communicator: Communicator | undefined;
  /** For checkpoints of `fit`. */
  readonly folder: string;
  /** Where the run goes on from those. */
  readonly resumes: boolean;
  /** Called after each step. */
  readonly stepped: () => void;
  /** Ends this process. */
  readonly kill: () => void;
  /** More of them. */
  readonly callbacks: readonly Callback[];
}

/** Returns the mean losses of steps, as float32, and where the loader stood. */
export async function trainByFit({
  one,
  index,
  parts,
  loader,
  isWhole,
  communicator,
  folder,
  resumes,
  stepped,
  kill,
  callbacks,
}: FitPhase) {
  const { module, parallel, optimizer, ema, scaler, schedule } = parts;
  const begin = index > 0 ? one.break! : 0;
  const isKilled = one.killed !== undefined && index === 0;
  const end = isKilled || index === one.phases.length - 1 ? stepsOf(one) : one.break!;
  const rank = communicator?.rank ?? 0;
  const offset = resumes ? 0 : begin;
  const interruption = new AbortController();
  let state: object = loader.stateDict();
  const seeding = { onStepBegin: ({ step }: { step: number }) => void manualSeed(seedOf(one, step + offset, rank)) };
  type At = { step: number; contents(): Promise<{ values?: { readonly [key: string]: unknown } }> };
  const stop = async (at: At) => {
    if (isKilled && at.step === one.break! + 1) kill();
    if (at.step + offset !== end || end === stepsOf(one)) return;
    const { values } = await at.contents();
    const run = values?.fit as { ranks: { loader: object }[] } | undefined; // on the first rank alone
    state = run?.ranks[0]?.loader ?? state;
    interruption.abort();
  };
  // After the last step of an epoch, that is over.
  const ended = (at: At) => {
    stepped();
    return stop(at);
  };
  const stopping = { onStepEnd: ended, onEpochEnd: stop };
  const throwing = {
    onStepEnd() {
      if (one.throws === rank) throw new Error(PLANTED);
    },
  };
  const clip = {
    ...(one.clipNorm !== undefined && { norm: one.clipNorm }),
    ...(one.clipValue !== undefined && { value: one.clipValue }),
  };
  const saving =
    resumes || (index === 0 && one.break)
      ? [checkpoints(folder, { every: one.killed === undefined ? one.break! : 1, trainable: one.trainable ?? false })]
      : [];
  const { losses } = await fit<Batch>((parallel as DataParallel<Module> | undefined) ?? module, {
    data: loader as Iterable<Batch>,
    forward: (batch) => forward(one, parts, batch),
    optimizer,
    epochs: EPOCHS - (resumes ? 0 : Math.floor((begin * EPOCHS) / stepsOf(one))),
    accumulate: one.phases[index]!.accumulate,
    compile: one.seed % 4 > 0,
    callbacks: [seeding, throwing, stopping, ...saving, ...callbacks],
    signal: interruption.signal,
    ...(resumes && { resume: true }),
    ...(Object.keys(clip).length > 0 && { clip }),
    ...(one.validated && { validation: loaderOf(one, batchSizeOf(one.phases[index]!)) as Iterable<Batch> }),
    ...(ema && { ema }),
    ...(scaler && { scaler }),
    ...(schedule && { schedule }),
    ...(communicator && isWhole && { communicator }),
  });
  return { losses: losses.slice(resumes ? begin : 0).map((loss) => [`~${loss}`]), state };
}

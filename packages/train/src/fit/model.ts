/** A model as loops use it: whole on this rank, or in parts. */
import { check, show } from "@opt/core";
import type { Module } from "@opt/nn";
import type { FitCommunicator, ParallelModel, Placing, Weights } from "./parts";

export interface PlacedModel {
  readonly module: Module;
  forward(...inputs: never[]): unknown;
  /** What this rank has of the weights. */
  readonly weights: Weights;
  /** Ranks gather weights in each forward: all of them compute, or none. */
  readonly isInParts: boolean;
  /** The ranks that have other samples. */
  readonly communicator: FitCommunicator | undefined;
  /** The model was given with its communicator. */
  readonly parallel: ParallelModel | undefined;
  /** The ranks that save together, and their layout. Undefined in one process. */
  readonly placing: Placing | undefined;
}

/**
 * @throws OptError BAD_ARGUMENT for what is no model or communicator, and for weights that are divided over ranks with other samples
 */
export function placed(where: string, model: Module | ParallelModel, given: FitCommunicator | undefined): PlacedModel {
  const isParallel = typeof (model as ParallelModel | null)?.sync === "function";
  const parallel = isParallel ? (model as ParallelModel) : undefined;
  const module = parallel?.module ?? (model as Module);
  const isModule = typeof module?.forward === "function" && typeof module.modules === "function";
  const cure = "A Module, or a DataParallel or FullyShardedDataParallel of one.";
  check(isModule, "BAD_ARGUMENT", where, () => `needs a model, got ${show(model)}.`, cure);
  const isOurs = given === undefined || typeof given.replicate === "function";
  check(
    isOurs,
    "BAD_ARGUMENT",
    where,
    () => `communicator must be one of @opt/parallel, got ${show(given)}.`,
    "communicator: await connect()",
  );
  check(
    !given || !parallel || given === parallel.communicator,
    "BAD_ARGUMENT",
    where,
    () => "communicator must be that of the model, got another one.",
    "Leave it out.",
  );
  const communicator = given ?? parallel?.communicator;
  const isInParts = parallel?.namedParameters !== undefined;
  const weights = isInParts ? (parallel as Weights) : module;
  const tensors = weights.namedTensors();
  const divided = tensors.find(([, { placement }]) => placement?.cuts.some(({ axis }) => axis.size > 1));
  check(
    communicator !== undefined || divided === undefined,
    "BAD_ARGUMENT",
    where,
    () =>
      `${divided![0]} is divided over ranks, so a communicator must say which of them have other samples, got none.`,
    'communicator: mesh(await connect(), { data: 1, model: 2 }).axis("data")',
  );
  const placing = (parallel?.placing ? parallel : communicator)?.placing?.(tensors);
  const forward = (...inputs: never[]) => (parallel ?? module).forward(...inputs);
  return { module, forward, weights, isInParts, communicator, parallel, placing };
}

/** Whether this rank's weights are parts of others'. */
export const isDivided = ({ weights }: PlacedModel): boolean =>
  weights.namedTensors().some(([, { placement }]) => placement !== null);

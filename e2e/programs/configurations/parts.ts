/** What a run is made of in one phase: model, optimizer, averages, scaler, schedule, on the ranks of this phase. */
import {
  type BaseOptions,
  type CombinedOptimizer,
  combine,
  ExponentialMovingAverage,
  GradScaler,
  Lookahead,
  l2,
  type Optimizer,
  type OptimizerClass,
  SAM,
  type ScheduleFree,
  scheduleFree,
  type Tensor,
} from "@opt/core";
import { CosineAnnealingLR, ExponentialLR, LinearLR, type LRScheduler, OneCycleLR, StepLR } from "@opt/core/schedules";
import type { Module } from "@opt/nn";
import {
  type Communicator,
  DataParallel,
  FullyShardedDataParallel,
  type ProcessMesh,
  ShardedOptimizer,
} from "@opt/parallel";
import type { Configuration, Phase } from "@opt/testkit/configurations";
import { Block, modelOf } from "./models";

/** The ranks of a phase, as this process sees them. */
export interface Place {
  readonly communicator: Communicator;
  /** Where layers are divided. */
  readonly grid: ProcessMesh | undefined;
}

// biome-ignore-start lint/suspicious/noExplicitAny: each class has options of its own
type Whole = Optimizer<any> | CombinedOptimizer<any, any> | Lookahead<any> | SAM<any> | ScheduleFree<any>;
export type AnyOptimizer = Whole | ShardedOptimizer<any>;
// biome-ignore-end lint/suspicious/noExplicitAny: each class has options of its own
export type Optimizers = Readonly<Record<string, OptimizerClass<BaseOptions>>>;

export interface Parts {
  readonly module: Module;
  readonly parallel: DataParallel<Module> | FullyShardedDataParallel<Module> | undefined;
  readonly named: readonly (readonly [string, Tensor])[];
  readonly optimizer: AnyOptimizer;
  readonly ema: ExponentialMovingAverage | undefined;
  readonly scaler: GradScaler | undefined;
  readonly schedule: LRScheduler | undefined;
}

/** All in one group, or vectors at another rate without decay. */
function groupsOf(one: Configuration, named: readonly (readonly [string, Tensor])[]) {
  // Frozen ones are left out, but where a program passes all that a model has.
  const params = one.unnamed ? named : named.filter(([, { requiresGrad }]) => requiresGrad);
  if (one.unnamed) return params.map(([, parameter]) => parameter);
  if (!one.groups) return params;
  const isMatrix = ([, { shape }]: readonly [string, Tensor]) => shape.length > 1;
  const { lr = 0.01, weightDecay } = one.options as { lr?: number; weightDecay?: number };
  const other = { lr: lr / 2, ...(weightDecay === undefined ? {} : { weightDecay: 0 }) };
  const groups = [{ params: params.filter(isMatrix) }, { params: params.filter((each) => !isMatrix(each)), ...other }];
  return groups.filter((group) => group.params.length > 0);
}

/** Those that Muon takes. */
const isMatrix = (_: string, { shape }: Tensor) => shape.length === 2;

/** An optimizer inside of its wrapper. */
function wrapped({ wrapper }: Configuration, optimizer: AnyOptimizer): AnyOptimizer {
  const inner = optimizer as never; // a divided one is rejected
  if (wrapper === "Lookahead") return new Lookahead(inner, { k: 2 });
  return wrapper === "scheduleFree" ? scheduleFree(inner) : new SAM(inner, { adaptive: wrapper === "ASAM" });
}

const SCHEDULES = {
  StepLR: (optimizer: AnyOptimizer) => new StepLR(optimizer, { stepSize: 2, gamma: 0.5 }),
  CosineAnnealingLR: (optimizer: AnyOptimizer) => new CosineAnnealingLR(optimizer, { tMax: 5 }),
  LinearLR: (optimizer: AnyOptimizer) => new LinearLR(optimizer, { startFactor: 0.25, totalIters: 4 }),
  OneCycleLR: (optimizer: AnyOptimizer) =>
    new OneCycleLR(optimizer, { maxLr: 0.02, totalSteps: 20, cycleMomentum: false }),
  ExponentialLR: (optimizer: AnyOptimizer) => new ExponentialLR(optimizer, { gamma: 0.75 }),
};

/** @param isDivided whether the model is one of ranks by now: `fit` can make it one */
export function partsOf(
  one: Configuration,
  phase: Phase,
  place: Place | undefined,
  optimizers: Optimizers,
  isDivided = true,
): Parts {
  const data = place?.grid?.axis("data") ?? place?.communicator;
  const module = modelOf(one, place?.grid?.axis("model"));
  const parallel =
    data === undefined || phase.over === "alone"
      ? undefined
      : phase.over === "FullyShardedDataParallel"
        ? new FullyShardedDataParallel(module, data, {
            ...(phase.shardOver && { shardOver: phase.shardOver }),
            ...(phase.units && { units: [Block] }),
          })
        : isDivided
          ? new DataParallel(module, data)
          : undefined;
  const named = parallel instanceof FullyShardedDataParallel ? parallel.namedParameters() : module.namedParameters();
  const Class = optimizers[one.optimizer]!;
  const groups = groupsOf(one, named) as never;
  const { penalty } = one;
  const options = { ...(one.options as object as BaseOptions), ...(penalty && { regularizer: l2(penalty) }) };
  const isSharded = phase.over === "ShardedOptimizer";
  const made = () => (isSharded ? new ShardedOptimizer(Class, groups, options, data!) : new Class(groups, options));
  const combined = () => {
    const classes = { matrices: isSharded ? (ShardedOptimizer as never) : Class, rest: optimizers.AdamW! };
    const { regularizer } = options;
    return combine(
      groups,
      classes,
      { matrices: options, rest: { lr: 0.01, ...(regularizer && { regularizer }) } },
      { isMatrix },
    );
  };
  const optimizer = one.wrapper === "combine" ? combined() : one.wrapper === undefined ? made() : wrapped(one, made());
  return {
    module,
    parallel,
    named,
    optimizer,
    ema: one.ema ? new ExponentialMovingAverage(named, { decay: 0.75 }) : undefined,
    scaler: one.overflows ? new GradScaler({ initScale: 1024, growthInterval: 2 }) : undefined,
    schedule: one.schedule && SCHEDULES[one.schedule](optimizer),
  };
}

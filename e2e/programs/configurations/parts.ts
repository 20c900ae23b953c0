/** What a run is made of in one phase: model, optimizer, averages, scaler, schedule, on the ranks of this phase. */
import {
  type BaseOptions,
  type CombinedOptimizer,
  combine,
  ExponentialMovingAverage,
  GradScaler,
  type GroupOptions,
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
type AnyOptimizer = Whole | ShardedOptimizer<any>;
// biome-ignore-end lint/suspicious/noExplicitAny: each class has options of its own
export type Optimizers = Readonly<Record<string, OptimizerClass<BaseOptions>>>;

export interface Parts {
  readonly module: Module;
  readonly parallel: DataParallel<Module> | FullyShardedDataParallel<Module> | undefined;
  readonly named: Named;
  readonly optimizer: AnyOptimizer;
  readonly ema: ExponentialMovingAverage | undefined;
  readonly scaler: GradScaler | undefined;
  readonly schedule: LRScheduler | undefined;
}

type Named = readonly (readonly [string, Tensor])[];

/** Frozen ones are left out, but where a program passes all that a model has. */
const trained = (one: Configuration, named: Named) =>
  one.unnamed ? named : named.filter(([, { requiresGrad }]) => requiresGrad);

/** All in one group, or vectors at another rate without decay. */
function groupsOf(one: Configuration, named: Named) {
  const params = trained(one, named);
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

/** The optimizer of these parameters, inside of its wrapper. */
function madeOf(one: Configuration, optimizers: Optimizers, named: Named, options: BaseOptions & GroupOptions): Whole {
  const { wrapper } = one;
  const Class = optimizers[one.optimizer]!;
  if (wrapper === "combine") {
    const { regularizer } = options;
    const rest = { lr: 0.01, ...(regularizer && { regularizer }) };
    return combine(
      trained(one, named),
      { matrices: Class, rest: optimizers.AdamW! },
      { matrices: options, rest },
      { isMatrix },
    );
  }
  const inner = new Class(groupsOf(one, named) as never, options);
  if (wrapper === undefined) return inner;
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
  const make = (params: Named) => madeOf(one, optimizers, params, options);
  const optimizer =
    phase.over !== "ShardedOptimizer"
      ? make(named)
      : one.wrapper === undefined
        ? new ShardedOptimizer(Class, groups, options, data!)
        : new ShardedOptimizer(make as never, trained(one, named) as never, {}, data!);
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

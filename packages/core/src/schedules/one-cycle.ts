import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import {
  finiteNumber,
  givenOptions,
  oneOf,
  perGroup,
  positiveNumber,
  trueOrFalse,
  wholeNumber,
} from "./scheduler/check";
import { MOMENTUM_NAMES, type MomentumOptions, momentumBounds } from "./scheduler/momentum";
import { PlannedLR } from "./scheduler/planned";
import {
  noteInitialValue,
  type PerGroup,
  type ScheduledOptimizer,
  type ScheduleOptions,
} from "./scheduler/scheduled-optimizer";

export interface OneCycleLROptions extends ScheduleOptions, MomentumOptions {
  /** The highest lr, for all groups or for each. */
  maxLr: PerGroup;
  /** Steps of the whole cycle; or give epochs and stepsPerEpoch. */
  totalSteps?: number | undefined;
  epochs?: number | undefined;
  stepsPerEpoch?: number | undefined;
  /** Part of the cycle in which the lr rises. */
  pctStart?: number;
  annealStrategy?: "cos" | "linear";
  /** The first lr is maxLr / divFactor. */
  divFactor?: number;
  /** The last lr is the first / finalDivFactor. */
  finalDivFactor?: number;
  /** Back to the first lr as fast as it rose, then down to the last. */
  threePhase?: boolean;
}

const NAMES = [
  "option",
  "maxLr",
  "totalSteps",
  "epochs",
  "stepsPerEpoch",
  "pctStart",
  "annealStrategy",
  ...MOMENTUM_NAMES,
  "divFactor",
  "finalDivFactor",
  "threePhase",
] as const;

/** A stretch of the cycle that ends at a step (which may be a fraction); levels: 0 first, 1 highest, 2 last. */
interface Phase {
  end: number;
  from: 0 | 1;
  to: 0 | 1 | 2;
}

/**
 * One rise of the lr to its maximum and one fall far below its start. Step it after every batch.
 *
 * lr(e): maxLr / divFactor -> maxLr at e = pctStart * totalSteps - 1 -> first / finalDivFactor at e = totalSteps - 1
 *
 * @throws OptError BAD_ARGUMENT for options out of range or cycleMomentum without betas or momentum; BAD_STATE for a step past
 * totalSteps
 * @see Smith & Topin 2018; torch.optim.lr_scheduler.OneCycleLR; unlike it, a rise of one step (pctStart *
 * totalSteps = 1) starts at the top instead of failing, and the bounds are this schedule's own, not the groups'
 * @example
 * const schedule = new OneCycleLR(optimizer, { maxLr: 0.01, epochs: 3, stepsPerEpoch: 938 });
 */
export class OneCycleLR extends PlannedLR {
  readonly #totalSteps: number;
  readonly #phases: readonly Phase[];
  readonly #cosine: boolean;

  constructor(optimizer: ScheduledOptimizer, options: OneCycleLROptions) {
    super("OneCycleLR", optimizer, options);
    const {
      maxLr,
      pctStart = 0.3,
      annealStrategy = "cos",
      threePhase = false,
    } = givenOptions("OneCycleLR", options, NAMES);
    const { divFactor = 25, finalDivFactor = 1e4 } = options;
    this.#totalSteps = totalStepsOf(options);
    const rise = finiteNumber("OneCycleLR", "pctStart", pctStart, 0, 1) * this.#totalSteps;
    this.#phases = phasesOf(rise, this.#totalSteps, trueOrFalse("OneCycleLR", "threePhase", threePhase));
    this.#cosine = oneOf("OneCycleLR", "annealStrategy", annealStrategy, ["cos", "linear"]) === "cos";
    const div = positiveNumber("OneCycleLR", "divFactor", divFactor);
    const finalDiv = positiveNumber("OneCycleLR", "finalDivFactor", finalDivFactor);
    const finite = (name: string, value: number) => finiteNumber("OneCycleLR", name, value);
    const maxLrs = perGroup<number>("OneCycleLR", "maxLr", maxLr, optimizer, finite);
    /** For each group: the first, the highest and the last lr. */
    const levels = maxLrs.map((max) => [max / div, max, max / div / finalDiv] as const);
    this.#startMomentum(options);
    this.bases = levels.map(([first]) => first);
    optimizer.groups.forEach((group, index) => {
      noteInitialValue(group, this.option, this.base(index));
    });
    this.overwrite((epoch, index) => this.#levelAt(epoch, this.forGroup(levels, index, "maxLr")));
  }

  #levelAt(epoch: number, levels: readonly [number, number, number]): number {
    check(
      epoch <= this.#totalSteps,
      "BAD_STATE",
      "OneCycleLR",
      () => `steps must be at most totalSteps = ${this.#totalSteps}, got step ${epoch}.`,
      "Make the schedule with more steps, or stop stepping it.",
    );
    const last = this.#phases.length - 1;
    const at = this.#phases.findIndex(({ end }, phase) => epoch <= end || phase === last);
    const { end, from, to } = this.#phases[at] as Phase;
    const start = at === 0 ? 0 : (this.#phases[at - 1] as Phase).end;
    const fraction = end === start ? 1 : (epoch - start) / (end - start);
    const [a, b] = [levels[from], levels[to]];
    return this.#cosine ? b + ((a - b) / 2) * (Math.cos(Math.PI * fraction) + 1) : (b - a) * fraction + a;
  }

  #startMomentum(options: OneCycleLROptions): void {
    const bounds = momentumBounds("OneCycleLR", this, [0.85, 0.95], options);
    if (bounds === null) return;
    this.momentumAt = (epoch, index) => {
      const [low, high] = this.forGroup(bounds, index, "maxMomentum");
      return this.#levelAt(epoch, [high, low, high]);
    };
  }
}

function totalStepsOf({ totalSteps, epochs, stepsPerEpoch }: OneCycleLROptions): number {
  if (totalSteps !== undefined) return wholeNumber("OneCycleLR", "totalSteps", totalSteps, 1);
  const isGiven = epochs !== undefined && stepsPerEpoch !== undefined;
  checkValue(isGiven, "OneCycleLR", "totalSteps", "given", totalSteps, "Or give both epochs and stepsPerEpoch.");
  const perEpoch = wholeNumber("OneCycleLR", "stepsPerEpoch", stepsPerEpoch, 1);
  return wholeNumber("OneCycleLR", "epochs", epochs, 1) * perEpoch;
}

function phasesOf(rise: number, totalSteps: number, threePhase: boolean): Phase[] {
  const up: Phase = { end: rise - 1, from: 0, to: 1 };
  if (!threePhase) return [up, { end: totalSteps - 1, from: 1, to: 2 }];
  return [up, { end: 2 * rise - 2, from: 1, to: 0 }, { end: totalSteps - 1, from: 0, to: 2 }];
}

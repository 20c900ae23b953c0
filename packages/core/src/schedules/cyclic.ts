import { checkValue } from "../errors/check-value";
import { finiteNumber, givenOptions, oneOf, perGroup, positiveNumber } from "./scheduler/check";
import { MOMENTUM_NAMES, type MomentumOptions, momentumBounds } from "./scheduler/momentum";
import { PlannedLR } from "./scheduler/planned";
import {
  initialValue,
  type PerGroup,
  type ScheduledOptimizer,
  type ScheduleOptions,
  setValue,
} from "./scheduler/scheduled-optimizer";

export interface CyclicLROptions extends ScheduleOptions, MomentumOptions {
  /** The lowest lr, for all groups or for each. */
  baseLr: PerGroup;
  /** The lr at the top of the first cycle. */
  maxLr: PerGroup;
  /** Epochs from the lowest to the highest lr. */
  stepSizeUp?: number;
  /** Epochs back down; as many as up if absent. */
  stepSizeDown?: number | undefined;
  /** Every cycle alike, each half as high, or shrinking by gamma every epoch. */
  mode?: "triangular" | "triangular2" | "exp_range";
  gamma?: number;
  /** Replaces mode: the height of a cycle, by its number (from 1) or by the epoch, as scaleMode says. */
  scaleFn?: ((x: number) => number) | undefined;
  scaleMode?: "cycle" | "iterations";
}

const NAMES = [
  "option",
  "baseLr",
  "maxLr",
  "stepSizeUp",
  "stepSizeDown",
  "mode",
  "gamma",
  "scaleFn",
  "scaleMode",
  ...MOMENTUM_NAMES,
] as const;

/**
 * Moves the lr up and down between two bounds.
 *
 * lr(e) = baseLr + (maxLr - baseLr) * triangle(e) * scale; scale is 1, 2^(1 - cycle), gamma^e or scaleFn
 *
 * @throws OptError BAD_ARGUMENT for options out of range, or cycleMomentum without betas or momentum
 * @see Smith 2017; torch.optim.lr_scheduler.CyclicLR
 * @example
 * const schedule = new CyclicLR(optimizer, { baseLr: 1e-4, maxLr: 1e-2, stepSizeUp: 500 });
 */
export class CyclicLR extends PlannedLR {
  readonly #totalSize: number;
  readonly #stepRatio: number;
  readonly #scale: (cycle: number, epoch: number) => number;

  constructor(optimizer: ScheduledOptimizer, options: CyclicLROptions) {
    super("CyclicLR", optimizer, options);
    const { baseLr, maxLr, stepSizeUp = 2000, stepSizeDown = stepSizeUp } = givenOptions("CyclicLR", options, NAMES);
    const finite = (name: string, value: number) => finiteNumber("CyclicLR", name, value);
    const baseLrs = perGroup<number>("CyclicLR", "baseLr", baseLr, optimizer, finite);
    const maxLrs = perGroup<number>("CyclicLR", "maxLr", maxLr, optimizer, finite);
    const up = positiveNumber("CyclicLR", "stepSizeUp", stepSizeUp);
    this.#totalSize = up + finiteNumber("CyclicLR", "stepSizeDown", stepSizeDown, 0);
    this.#stepRatio = up / this.#totalSize;
    this.#scale = scaleOf(options);
    this.#startMomentum(options);
    optimizer.groups.forEach((group, index) => {
      setValue(group, this.option, baseLrs[index] as number);
    });
    // As in PyTorch, an earlier schedule's base lr still decides epoch 0.
    this.bases = optimizer.groups.map((group) => initialValue(group, this.option));
    this.overwrite((epoch, index) => {
      const base = this.base(index);
      return base + this.#height(epoch, base, this.forGroup(maxLrs, index, "maxLr"));
    });
    this.bases = baseLrs;
  }

  /** How far above `low` the triangle stands. */
  #height(epoch: number, low: number, high: number): number {
    const cycle = Math.floor(1 + epoch / this.#totalSize);
    const x = 1 + epoch / this.#totalSize - cycle;
    const triangle = x <= this.#stepRatio ? x / this.#stepRatio : (x - 1) / (this.#stepRatio - 1);
    return (high - low) * triangle * this.#scale(cycle, epoch);
  }

  #startMomentum(options: CyclicLROptions): void {
    const bounds = momentumBounds("CyclicLR", this, [0.8, 0.9], options);
    if (bounds === null) return;
    this.momentumAt = (epoch, index) => {
      const [low, high] = this.forGroup(bounds, index, "maxMomentum");
      return high - this.#height(epoch, low, high);
    };
  }
}

function scaleOf(options: CyclicLROptions): (cycle: number, epoch: number) => number {
  const { mode = "triangular", gamma = 1, scaleFn, scaleMode = "cycle" } = options;
  oneOf("CyclicLR", "mode", mode, ["triangular", "triangular2", "exp_range"]);
  oneOf("CyclicLR", "scaleMode", scaleMode, ["cycle", "iterations"]);
  finiteNumber("CyclicLR", "gamma", gamma, 0);
  if (scaleFn !== undefined) {
    checkValue(typeof scaleFn === "function", "CyclicLR", "scaleFn", "a function", scaleFn, "Pass one, or a mode.");
    return (cycle, epoch) => scaleFn(scaleMode === "cycle" ? cycle : epoch);
  }
  if (mode === "triangular2") return (cycle) => 1 / 2 ** (cycle - 1);
  return mode === "exp_range" ? (_cycle, epoch) => gamma ** epoch : () => 1;
}

/** A line search for the strong Wolfe conditions, in PyTorch's order of operations. */

/** A step length, and the objective and its derivative along the direction there. */
export interface Trial {
  readonly t: number;
  readonly loss: number;
  readonly slope: number;
}

/** Sufficient decrease: loss(t) <= loss(0) + C1 t slope(0). Curvature: |slope(t)| <= C2 |slope(0)|. */
const C1 = 1e-4;
const C2 = 0.9;

export interface SearchLimits {
  /** The largest component of the direction. */
  readonly size: number;
  /** Brackets in which no component would move by as much are not divided. */
  readonly toleranceChange: number;
  /** Evaluations after the first. */
  readonly maxIterations: number;
}

/**
 * Finds a step length that satisfies both conditions, or the best one that was tried. It brackets such a length by growing steps, then
 * divides the bracket by cubic interpolation.
 *
 * @param start the trial with t = 0
 * @param first the first step length
 * @source Nocedal & Wright, "Numerical Optimization", algorithms 3.5 and 3.6; torch.optim.LBFGS
 */
export async function strongWolfe<T extends Trial>(
  start: T,
  first: number,
  evaluate: (t: number) => Promise<T>,
  { size, toleranceChange, maxIterations }: SearchLimits,
): Promise<{ readonly found: T; readonly evaluations: number }> {
  const isTooHigh = ({ loss, t }: Trial) => loss > start.loss + C1 * t * start.slope;
  const isFlat = ({ slope }: Trial) => Math.abs(slope) <= -C2 * start.slope;
  let iterations = 0;
  const next = (t: number) => {
    iterations++;
    return evaluate(t);
  };

  let previous = start;
  let trial = await evaluate(first);
  let bracket: [T, T] | undefined;
  while (bracket === undefined && iterations < maxIterations) {
    if (isTooHigh(trial) || (iterations > 1 && trial.loss >= previous.loss)) bracket = [previous, trial];
    else if (isFlat(trial)) return { found: trial, evaluations: iterations + 1 };
    else if (trial.slope >= 0) bracket = [previous, trial];
    else {
      const { t } = trial;
      const longer = cubicMinimum(previous, trial, t + 0.01 * (t - previous.t), t * 10);
      previous = trial;
      trial = await next(longer);
    }
  }
  bracket ??= [start, trial];
  let low = lowerOf(bracket);

  let isSlow = false;
  while (iterations < maxIterations && !(Math.abs(bracket[1].t - bracket[0].t) * size < toleranceChange)) {
    const [least, most] = [Math.min(bracket[0].t, bracket[1].t), Math.max(bracket[0].t, bracket[1].t)];
    let t = cubicMinimum(...bracket, least, most);
    const margin = 0.1 * (most - least);
    const isNearEnd: boolean = Math.min(most - t, t - least) < margin;
    // The second time near an end, or at once on it, the trial moves away from there.
    const moves: boolean = isNearEnd && (isSlow || t >= most || t <= least);
    if (moves) t = Math.abs(t - most) < Math.abs(t - least) ? most - margin : least + margin;
    isSlow = isNearEnd && !moves;

    trial = await next(t);
    const high = 1 - low;
    if (isTooHigh(trial) || trial.loss >= bracket[low]!.loss) {
      bracket[high] = trial;
      low = lowerOf(bracket);
    } else if (isFlat(trial)) return { found: trial, evaluations: iterations + 1 };
    else {
      if (trial.slope * (bracket[high]!.t - bracket[low]!.t) >= 0) bracket[high] = bracket[low]!;
      bracket[low] = trial;
    }
  }
  return { found: bracket[low]!, evaluations: iterations + 1 };
}

/** Which trial has the lower loss. */
function lowerOf([a, b]: readonly [Trial, Trial]): number {
  return a.loss <= b.loss ? 0 : 1;
}

/** The minimum in [low, high] of the cubic through two trials, or the middle where it has none. */
function cubicMinimum(a: Trial, b: Trial, low: number, high: number): number {
  const d1 = a.slope + b.slope - (3 * (a.loss - b.loss)) / (a.t - b.t);
  const square = d1 * d1 - a.slope * b.slope;
  if (!(square >= 0)) return (low + high) / 2;
  const d2 = Math.sqrt(square);
  const minimum =
    a.t <= b.t
      ? b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
      : a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2));
  return Math.min(Math.max(minimum, low), high);
}

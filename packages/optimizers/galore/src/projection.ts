/** Which side of a matrix is projected to a low rank, the products that do it, and the options that say so. */
import { type Counters, checkValue, defineRule, emptyLike, type Shape, type Tensor } from "@opt/core";

/**
 * Which side of a matrix [m, n] is projected: "std" the shorter one, "reverseStd" the longer one, "left" m, "right" n. Of a square "std"
 * projects the right side, "reverseStd" the left one.
 */
export type ProjectionType = "std" | "reverseStd" | "left" | "right";

/** The options of projections. */
export interface ProjectionOptions {
  readonly rank: number;
  readonly projectionType: ProjectionType;
  readonly updateProjectionGap: number;
  lr: number;
  maximize: boolean;
}

export const BUFFERS = ["param", "grad", "direction"] as const;

/** Projections take the gradient as it is. */
export const gradientRule = /* @__PURE__ */ defineRule({
  name: "projectedGradient",
  buffers: BUFFERS,
  scalars: [],
  update: ({ grad }) => ({ direction: grad }),
});

const TYPES: readonly ProjectionType[] = ["std", "reverseStd", "left", "right"];

const isCount = (value: number) => Number.isSafeInteger(value) && value > 0;

/** @throws OptError BAD_ARGUMENT */
export function checkProjection(where: string, { rank, projectionType, updateProjectionGap }: ProjectionOptions): void {
  for (const [name, count] of Object.entries({ rank, updateProjectionGap }))
    checkValue(isCount(count), where, name, "a whole number from 1 on", count, "Leave it out for the default.");
  const types = TYPES.map((type) => `"${type}"`).join(", ");
  const isType = TYPES.includes(projectionType);
  checkValue(isType, where, "projectionType", `one of ${types}`, projectionType, 'The default is "std".');
}

/** Whether it is the rows' side m that is projected. */
function isLeft([m, n]: Shape, type: ProjectionType): boolean {
  if (type === "left" || type === "right") return type === "left";
  return m! < n! === (type === "std");
}

const isProjected = (shape: Shape) => shape.length === 2 && !shape.includes(0);

/** Adam's averages, of matrices in the low rank, and their projection [m, r] or [n, r]. */
export function stateShapes(shape: Shape, { rank, projectionType }: ProjectionOptions): Record<string, Shape> {
  if (!isProjected(shape)) return { exp_avg: shape, exp_avg_sq: shape };
  const [m, n] = shape as [number, number];
  const r = Math.min(rank, m, n);
  const left = isLeft(shape, projectionType);
  const low = left ? [r, n] : [m, r];
  return { exp_avg: low, exp_avg_sq: low, projection: [left ? m : n, r] };
}

/** "refresh" makes the projections anew. */
export function phaseOf({ updateProjectionGap }: ProjectionOptions, { step }: Counters): string {
  return (step - 1) % updateProjectionGap === 0 ? "refresh" : "between";
}

/** The projection of a matrix. */
export class Projection {
  /** @param matrix [m, r], or [n, r] where it is not of the left side */
  constructor(
    readonly matrix: Tensor,
    readonly isLeft: boolean,
  ) {}

  /** P^T x, or x P. */
  into(x: Tensor): Tensor {
    return this.isLeft ? this.matrix.matmul(x, { transposeA: true }) : x.matmul(this.matrix);
  }

  /** P x, or x P^T. */
  back(x: Tensor): Tensor {
    return this.isLeft ? this.matrix.matmul(x) : x.matmul(this.matrix, { transposeB: true });
  }
}

/** A parameter in this step. */
export interface Member {
  /** Null where the parameter is no matrix. */
  readonly projection: Projection | null;
  /** The gradient, of a matrix the projected one. */
  readonly gradient: Tensor;
  /** What a launch of Adam's averages writes here: their quotient. */
  readonly quotient: Tensor;
  /** The buffers of that launch: the next averages, the quotient, the averages, the gradient. */
  readonly moments: readonly Tensor[];
  readonly states: readonly (readonly [state: Tensor, next: Tensor])[];
}

/** @param renew makes the projection's matrix anew; null between refreshes */
export function memberOf(
  whole: Tensor,
  state: ReadonlyMap<string, Tensor>,
  type: ProjectionType,
  renew: ((old: Projection) => Tensor) | null,
): Member {
  const [expAvg, expAvgSq, stored] = [state.get("exp_avg")!, state.get("exp_avg_sq")!, state.get("projection")];
  const [nextAvg, nextSq, quotient] = [emptyLike(expAvg), emptyLike(expAvg), emptyLike(expAvg)];
  const old = stored ? new Projection(stored, isLeft(whole.shape, type)) : null;
  const projection = old && renew ? new Projection(renew(old), old.isLeft) : old;
  const gradient = projection?.into(whole) ?? whole;
  const averages = [[expAvg, nextAvg] as const, [expAvgSq, nextSq] as const];
  return {
    ...{ projection, gradient, quotient },
    moments: [nextAvg, nextSq, quotient, expAvg, expAvgSq, gradient],
    states: projection === old ? averages : [...averages, [stored!, projection!.matrix]],
  };
}

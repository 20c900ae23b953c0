/** What LBFGS keeps from one iteration to the next: vectors on their device, and a few numbers. */
import { check, concat, keep, noGrad, show, Tensor, tidy } from "@opt/core";
import { type Change, directionOf, dot } from "./direction";
import type { Vectors } from "./vectors";

/** PyTorch's keys. Vectors have the elements of all parameters, or this rank's part of them: their `placement` says which. */
export interface LBFGSMemory {
  func_evals: number;
  n_iter: number;
  /** The last direction, and the length of the step along it. */
  d?: Tensor;
  t?: number;
  /** Differences of gradients, steps, and 1 / (difference step): the oldest first. */
  old_dirs?: Tensor[];
  old_stps?: Tensor[];
  ro?: number[];
  H_diag?: number;
  /** Where the last direction was computed. */
  prev_flat_grad?: Tensor;
  prev_loss?: number;
}

/** The objective at a place, with what the next iteration asks of its gradient. */
export interface Place {
  readonly loss: number;
  readonly gradient: Tensor;
  /** The largest component of the gradient. */
  readonly largest: number;
  /** The change since the place before, or null at the first one. */
  change: { readonly difference: Tensor; readonly step: Tensor; readonly ys: number; readonly yy: number } | null;
  /** The sum of all components of the first gradient. */
  readonly sum: number;
}

/** Changes of less curvature are not stored. */
const LEAST_CURVATURE = 1e-10;

export class History {
  funcEvals = 0;
  nIter = 0;
  /** The last direction, and the length of the step along it. */
  direction: Tensor | null = null;
  t = 0;
  #changes: Change[] = [];
  #scale = 1;
  #gradient: Tensor | null = null;
  #loss = 0;

  constructor(private readonly vectors: Vectors) {}

  /** What is to be known of a place, in one read. */
  async arrive(gradient: Tensor, loss: number | Promise<number>): Promise<Place> {
    const { direction, t, vectors } = this;
    const found = quietly(() => {
      const largest = vectors.largest(gradient);
      if (direction === null) {
        const magnitudes = vectors.products();
        magnitudes.own.set(gradient.abs());
        return { numbers: packed(largest, vectors.sum(magnitudes)) };
      }
      const difference = gradient.sub(this.#gradient!);
      const step = direction.mul(t);
      const numbers = packed(largest, dot(vectors, difference, step), dot(vectors, difference, difference));
      return { numbers, change: { difference, step } };
    });
    const [value, [largest, second, third]] = await Promise.all([loss, read(found.numbers)]);
    const change = found.change === undefined ? null : { ...found.change, ys: second!, yy: third! };
    return { loss: value, gradient, largest: largest!, change, sum: second! };
  }

  /** Computes the direction from a place, whose vectors it takes over. Its slope, and its largest component. */
  async turn(place: Place, historySize: number): Promise<{ slope: number; reach: number }> {
    this.#take(place.change, historySize);
    place.change = null;
    const { gradient } = place;
    const { direction, numbers } = quietly(() => {
      const { direction, slope } = directionOf(this.vectors, gradient, this.#changes, this.#scale);
      return { direction, numbers: packed(slope, this.vectors.largest(direction)) };
    });
    this.direction?.dispose();
    this.direction = keep(direction);
    if (this.#gradient !== gradient) this.#gradient?.dispose();
    this.#gradient = gradient;
    this.#loss = place.loss;
    const [slope, reach] = await read(numbers);
    return { slope: slope!, reach: reach! };
  }

  #take(change: Place["change"], historySize: number): void {
    if (change === null) return;
    const { difference, step, ys, yy } = change;
    if (ys > LEAST_CURVATURE) {
      while (this.#changes.length >= historySize) disposeAll(this.#changes.shift()!);
      this.#changes.push({ difference, step, ro: 1 / ys });
      this.#scale = ys / yy;
    } else disposeAll(change);
  }

  /** The product of a gradient and the direction. */
  async slope(gradient: Tensor): Promise<number> {
    const [slope] = await read(quietly(() => packed(dot(this.vectors, gradient, this.direction!))));
    return slope!;
  }

  /** Frees a place that no iteration began from. */
  leave({ gradient, change }: Place): void {
    if (gradient !== this.#gradient) gradient.dispose();
    if (change !== null) disposeAll(change);
  }

  /** Everything, live. Null before the first step. */
  save(): LBFGSMemory | null {
    if (this.funcEvals === 0) return null;
    const counts = { func_evals: this.funcEvals, n_iter: this.nIter };
    if (this.direction === null) return counts;
    const placed = (vector: Tensor) => {
      vector.placement = this.vectors.placement;
      return vector;
    };
    return {
      ...counts,
      d: placed(this.direction),
      t: this.t,
      old_dirs: this.#changes.map(({ difference }) => placed(difference)),
      old_stps: this.#changes.map(({ step }) => placed(step)),
      ro: this.#changes.map(({ ro }) => ro),
      H_diag: this.#scale,
      prev_flat_grad: placed(this.#gradient!),
      prev_loss: this.#loss,
    };
  }

  /** Looks through a saved state. Returns what takes over copies, on the device and in the dtype of `like`. @throws OptError BAD_STATE */
  checked(where: string, saved: LBFGSMemory | undefined, like: Tensor): () => void {
    const { length, ownLength } = this.vectors;
    const { func_evals = 0, n_iter = 0, d, t = 0, H_diag = 1, prev_loss = 0, ...rest } = checkedMemory(where, saved);
    const { old_dirs = [], old_stps = [], ro = [], prev_flat_grad } = rest;
    const vectors = { d, prev_flat_grad, ...named("old_dirs", old_dirs), ...named("old_stps", old_stps) };
    const present = Object.entries(vectors).filter(([, value]) => d !== undefined || value !== undefined);
    for (const [name, value] of present) {
      const fits = value instanceof Tensor && [length, ownLength].includes(value.size);
      check(
        fits,
        "BAD_STATE",
        where,
        () => `${name} must be a tensor of ${length} elements, got ${show(value)}.`,
        "It is of another optimizer, or the model has changed.",
      );
    }
    const numbers = { func_evals, n_iter, t, H_diag, prev_loss, ...named("ro", ro) };
    for (const [name, value] of Object.entries(numbers)) {
      check(
        Number.isFinite(value),
        "BAD_STATE",
        where,
        () => `${name} must be a number, got ${show(value)}.`,
        "The state is damaged.",
      );
    }
    const areLike = old_dirs.length === ro.length && old_stps.length === ro.length;
    check(
      areLike,
      "BAD_STATE",
      where,
      () => `needs as many old_dirs and old_stps as ro, which has ${ro.length}.`,
      "The state is damaged.",
    );
    return () => {
      const copy = (x: Tensor) => keep(quietly(() => this.vectors.own(x).to(like.device).to(like.dtype).clone()));
      const changes = ro.map((ro, i) => ({ difference: copy(old_dirs[i]!), step: copy(old_stps[i]!), ro }));
      const [direction, gradient] = [d, prev_flat_grad].map((x) => (d === undefined ? null : copy(x!)));
      this.dispose();
      Object.assign(this, { funcEvals: func_evals, nIter: n_iter, direction, t });
      this.#changes = changes;
      this.#scale = H_diag;
      this.#gradient = gradient!;
      this.#loss = prev_loss;
    };
  }

  dispose(): void {
    for (const change of this.#changes.splice(0)) disposeAll(change);
    this.direction?.dispose();
    this.#gradient?.dispose();
    this.direction = this.#gradient = null;
    this.funcEvals = this.nIter = this.t = this.#loss = 0;
    this.#scale = 1;
  }
}

function checkedMemory(where: string, saved: unknown): Partial<LBFGSMemory> {
  check(
    saved === undefined || Object(saved) === saved,
    "BAD_STATE",
    where,
    () => `the state must be an object, got ${show(saved)}.`,
    "Pass what stateDict() returned.",
  );
  return saved ?? {};
}

const named = <Value>(name: string, list: readonly Value[]) =>
  Object.fromEntries(list.map((value, i) => [`${name}[${i}]`, value]));

function disposeAll({ difference, step }: { readonly difference: Tensor; readonly step: Tensor }): void {
  difference.dispose();
  step.dispose();
}

/** Without a tape, freeing what is not returned. */
function quietly<Result>(body: () => Result): Result {
  return noGrad(() => tidy(body));
}

/** Tensors of one element as one, for one read. */
const packed = (...numbers: Tensor[]) => concat(numbers.map((x) => x.reshape([1])));

async function read(numbers: Tensor): Promise<number[]> {
  try {
    return [...(await numbers.data())];
  } finally {
    numbers.dispose();
  }
}

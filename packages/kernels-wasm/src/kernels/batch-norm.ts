/** Normalisation of channels over a batch and its gradient, in float64: the sum of each image's run, images in order. */
import type { ComputeDType, Launch, Spec } from "@opt/core/backend";
import { type FunctionBuilder, f64, f64x2, i32, type Local, ModuleBuilder, type Value, v128 } from "../assembler";
import type { KernelSource, Target } from "../kernel";
import { type Float, floatOf, vectorOf } from "./float";
import { sumsOfRow } from "./reduce/sum";
import { type Step, walkBlocks } from "./row";

type Vector = Value<"v128">;
type Pointer = Local<"i32">;
type Term<R> = (pair: number, ...elements: Local<"v128">[]) => R;

/** Channels whose images have one value each that are treated together. */
const COLUMNS = 8;

/** Channels that are treated together. Their numbers are pairs of float64; those of a run are the same in both lanes. */
class Channels {
  readonly #perStep: number;

  constructor(
    private readonly f: FunctionBuilder,
    private readonly float: Float,
    /** The channels, or "run" of one with all of its neighbours. */
    private readonly columns: readonly Step[] | "run",
    private readonly outer: Pointer,
    /** Bytes from an image to the next. */
    private readonly stride: Pointer,
    private readonly inner: Pointer,
  ) {
    this.#perStep = float.lanes / 2;
  }

  /** Makes numbers of each pair. */
  each(make: (pair: number) => Vector): Local<"v128">[] {
    const ofSteps = (steps: readonly Step[]) => steps.reduce((sum, { elements }) => sum + Math.ceil(elements / 2), 0);
    const length = this.columns === "run" ? 1 : ofSteps(this.columns);
    return Array.from({ length }, (_, pair) => this.f.local("v128", make(pair)));
  }

  /** Sums of each of `count` terms by pair. */
  sums(pointers: readonly Pointer[], count: number, terms: Term<readonly Vector[]>): Local<"v128">[][] {
    const { f, float, columns, inner } = this;
    const transposed = (step: Step, cursors: readonly Pointer[], first: number) => {
      const byPair = this.#terms(step, cursors, first, terms);
      return Array.from({ length: count }, (_, k) => byPair.map((pair) => pair[k]!));
    };
    if (columns === "run") {
      const totals = Array.from({ length: count }, () => f.local("f64", 0));
      this.#forImages(pointers, (cursors) => {
        const sums = sumsOfRow(f, float, cursors, inner, count, (step, ...at) => transposed(step, at, 0));
        for (const [k, total] of totals.entries()) f.set(total, f64.add(total, sums[k]!));
      });
      return totals.map((total) => [f.local("v128", f64x2.splat(total))]);
    }
    const totals = Array.from({ length: count }, () => this.each(() => f64x2.splat(f64.const(0))));
    this.#forImages(pointers, (cursors) => {
      for (const [k, step] of columns.entries()) {
        const first = k * this.#perStep;
        for (const [sum, pairs] of transposed(step, cursors, first).entries()) {
          for (const [half, pair] of pairs.entries()) {
            const total = totals[sum]![first + half]!;
            f.set(total, f64x2.add(total, pair));
          }
        }
      }
    });
    return totals;
  }

  /** Writes a term of each place. */
  write(pointers: readonly Pointer[], target: Pointer, term: Term<Vector>): void {
    const { f, float, columns, inner } = this;
    const store = (step: Step, first: number, to: Pointer, sources: readonly Pointer[]) =>
      step.store(to, vectorOf(float, this.#terms(step, sources, first, term)));
    this.#forImages([target, ...pointers], ([to, ...sources]) => {
      if (columns !== "run") for (const [k, step] of columns.entries()) store(step, k * this.#perStep, to!, sources);
      else
        walkBlocks(f, float, [to!, ...sources], inner, 2, (steps, at, ...cursors) => {
          for (const step of steps) store(step, 0, at!, cursors);
        });
    });
  }

  /** Numbers of the channels. */
  read(pointer: Pointer): Local<"v128">[] {
    const { f, float, columns } = this;
    if (columns !== "run") return columns.flatMap((step) => step.pairs(pointer));
    const splat = float.vector.loadSplat(pointer);
    return [f.local("v128", float.type === "f32" ? f64x2.promoteLowF32x4(splat) : splat)];
  }

  put(pointer: Pointer, numbers: readonly Vector[]): void {
    const { f, float, columns } = this;
    if (columns === "run") f.do(float.lowest.store(pointer, vectorOf(float, [numbers[0]!, numbers[0]!])));
    else
      for (const [k, step] of columns.entries())
        step.store(pointer, vectorOf(float, numbers.slice(k * this.#perStep, (k + 1) * this.#perStep)));
  }

  /** Terms of the pairs of a step, the first of which belongs to this pair of channels. */
  #terms<R>(step: Step, cursors: readonly Pointer[], first: number, term: Term<R>): R[] {
    const sources = cursors.map((cursor) => step.pairs(cursor));
    return sources[0]!.map((_, half) =>
      term(this.columns === "run" ? 0 : first + half, ...sources.map((pairs) => pairs[half]!)),
    );
  }

  #forImages(pointers: readonly Pointer[], body: (cursors: readonly Pointer[]) => void): void {
    const { f } = this;
    const cursors = pointers.map((pointer) => f.local("i32", pointer));
    const steps = cursors.map((cursor) => [cursor, this.stride] as const);
    f.walk(f.local("i32", this.outer), 1, steps, () => body(cursors));
  }
}

type Body = (f: FunctionBuilder, channels: Channels, count: Vector, eps: Vector, slices: Pointer[]) => void;

/**
 * The exports `runs`, of which items are channels, and `columns`, of which they are groups of COLUMNS. `large` slices have a value for each
 * place, the others for each channel.
 */
function emitChannels(dtype: ComputeDType, target: Target, large: readonly boolean[], body: Body): ModuleBuilder {
  const float = floatOf(dtype);
  const module = new ModuleBuilder(target);
  const types = ["i32", "i32", "i32", "i32", "i32", "i32", "f64", "f64", ...large.map(() => "i32" as const)] as const;
  for (const name of ["runs", "columns"] as const) {
    module.function(
      { parameters: types, export: name },
      (f, start, end, channels, outer, stride, inner, count, eps, ...slices) => {
        const splat = (value: Local<"f64">) => f.local("v128", f64x2.splat(value));
        const numbers = [splat(count as Local<"f64">), splat(eps as Local<"f64">)] as const;
        const sizes = [outer, stride, inner] as Pointer[] as [Pointer, Pointer, Pointer];
        const pointersFrom = (first: Pointer) => {
          const at = f.local("i32", i32.mul(first, float.bytes));
          const places = f.local("i32", i32.mul(at, inner as Pointer));
          return (slices as Pointer[]).map((slice, k) => f.local("i32", i32.add(slice, large[k] ? places : at)));
        };
        if (name === "runs") {
          const item = f.local("i32");
          f.for(item, start, end, 1, () =>
            body(f, new Channels(f, float, "run", ...sizes), ...numbers, pointersFrom(item)),
          );
          return;
        }
        const first = f.local("i32", i32.mul(start, COLUMNS));
        const last = f.least(i32.mul(end, COLUMNS), channels as Pointer);
        const pointers = pointersFrom(first);
        const ofSteps = (steps: readonly Step[], ...cursors: Pointer[]) =>
          body(f, new Channels(f, float, steps, ...sizes), ...numbers, cursors);
        walkBlocks(f, float, pointers, i32.sub(last, first), COLUMNS / float.lanes, ofSteps, { split: true });
      },
    );
  }
  return module;
}

function run(
  execution: Parameters<KernelSource<"batchNorm">["launch"]>[1],
  { kernel, outer, channels, inner, eps }: Launch<"batchNorm" | "batchNormGrad">,
  ...slices: readonly Launch<"batchNorm">["input"][]
): void {
  const stride = channels * inner * floatOf(kernel.spec.dtype).bytes;
  const name = inner === 1 ? "columns" : "runs";
  const range = inner === 1 ? Math.ceil(channels / COLUMNS) : channels;
  const split = { range, work: 4 * outer * channels * inner };
  execution.run(name, split, channels, outer, stride, inner, outer * inner, eps, ...slices);
}

const { add, div, mul, sqrt, sub } = f64x2;

function emit({ dtype }: Spec<"batchNorm">, target: Target): ModuleBuilder {
  const large = [true, false, false, true, false, false];
  return emitChannels(dtype, target, large, (f, channels, count, eps, slices) => {
    const [input, weight, bias, output, means, variances] = slices as Pointer[];
    const [sums] = channels.sums([input!], 1, (_, x) => [x!]);
    const mean = channels.each((pair) => div(sums![pair]!, count));
    const centered = (pair: number, x: Vector) => f.local("v128", sub(x, mean[pair]!));
    const [squares] = channels.sums([input!], 1, (pair, x) => {
      const difference = centered(pair, x!);
      return [mul(difference, difference)];
    });
    const variance = channels.each((pair) => div(squares![pair]!, count));
    const [weights, shift] = [channels.read(weight!), channels.read(bias!)];
    const scale = channels.each((pair) => div(weights[pair]!, sqrt(add(variance[pair]!, eps))));
    channels.write([input!], output!, (pair, x) => add(mul(sub(x!, mean[pair]!), scale[pair]!), shift[pair]!));
    channels.put(means!, mean);
    channels.put(variances!, variance);
  });
}

/** With h = (x - mean) rstd: dx = weight rstd (g - mean(g) - h mean(g h)), dweight = sum(g h), dbias = sum(g). */
function emitGrad({ dtype }: Spec<"batchNormGrad">, target: Target): ModuleBuilder {
  const large = [true, false, false, false, true, true, false, false];
  return emitChannels(dtype, target, large, (f, channels, count, eps, slices) => {
    const [input, weight, means, variances, gradient, dx, dweight, dbias] = slices as Pointer[];
    const mean = channels.read(means!);
    const [sum, along] = channels.sums([gradient!, input!], 2, (pair, g, x) => [g!, mul(g!, sub(x!, mean[pair]!))]);
    // Of nothing the variance is NaN, and sums are 0.
    const isSome = f.local("v128", f64x2.ne(count, f64x2.splat(f64.const(0))));
    const variance = channels.read(variances!);
    const rstd = channels.each((pair) =>
      v128.and(div(f64x2.splat(f64.const(1)), sqrt(add(variance[pair]!, eps))), isSome),
    );
    const weights = channels.read(weight!);
    const scale = channels.each((pair) => mul(weights[pair]!, rstd[pair]!));
    const slope = channels.each((pair) => div(mul(mul(along![pair]!, rstd[pair]!), rstd[pair]!), count));
    const shift = channels.each((pair) => div(sum![pair]!, count));
    channels.write([gradient!, input!], dx!, (pair, g, x) =>
      mul(scale[pair]!, sub(sub(g!, shift[pair]!), mul(sub(x!, mean[pair]!), slope[pair]!))),
    );
    channels.put(
      dweight!,
      channels.each((pair) => mul(along![pair]!, rstd[pair]!)),
    );
    channels.put(dbias!, sum!);
  });
}

export const batchNorm: KernelSource<"batchNorm"> = {
  emit,
  launch(launch, execution) {
    const { input, weight, bias, output, mean, variance } = launch;
    run(execution, launch, input, weight, bias, output, mean, variance);
  },
};

export const batchNormGrad: KernelSource<"batchNormGrad"> = {
  emit: emitGrad,
  launch(launch, execution) {
    const { input, weight, mean, variance, gradient, inputGradient, weightGradient, biasGradient } = launch;
    run(execution, launch, input, weight, mean, variance, gradient, inputGradient, weightGradient, biasGradient);
  },
};

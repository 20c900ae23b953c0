/** Normalisation of channels over a batch and its gradient, in float64: the sum of each image's run, images in order. */
import type { ComputeDType, Launch, Spec } from "@opt/core/backend";
import {
  type FunctionBuilder,
  f32x4,
  f64,
  f64x2,
  i32,
  type Local,
  ModuleBuilder,
  type Operand,
  type Value,
  v128,
} from "../assembler";
import type { KernelSource, Target } from "../kernel";
import { type Float, floatOf } from "./float";
import { type Reader, readerOf, sumTerms, writeTerms } from "./sum";

type Vector = Value<"v128">;
type Address = Operand<"i32">;
/** A channel with all of its neighbours, or so many channels whose images have one value each. */
type Columns = "run" | 8 | 2 | 1;
type Term<R> = (pair: number, ...elements: Local<"v128">[]) => R;

/** Channels that are treated together. Their numbers are pairs of float64; those of a run are the same in both lanes. */
class Channels {
  readonly #pairs: readonly number[];
  readonly #reader: Reader;

  constructor(
    private readonly f: FunctionBuilder,
    private readonly float: Float,
    private readonly columns: Columns,
    private readonly outer: Operand<"i32">,
    /** Bytes from an image to the next. */
    private readonly stride: Operand<"i32">,
    private readonly inner: Operand<"i32">,
  ) {
    this.#pairs = Array.from({ length: columns === "run" ? 1 : Math.ceil(columns / 2) }, (_, pair) => pair);
    this.#reader = readerOf(f, float.type);
  }

  /** Makes numbers of each pair. */
  each(make: (pair: number) => Vector): Local<"v128">[] {
    return this.#pairs.map((pair) => this.f.local("v128", make(pair)));
  }

  /** Sums of each of `count` terms by pair. */
  sums(pointers: readonly Address[], count: number, terms: Term<readonly Vector[]>): Local<"v128">[][] {
    const { f, columns } = this;
    if (columns === "run") {
      const totals = Array.from({ length: count }, () => f.local("f64", 0));
      this.#forImages(pointers, (cursors) => {
        const sums = sumTerms(f, this.#reader, cursors, this.inner, count, (...elements) => terms(0, ...elements));
        for (const [k, total] of totals.entries()) f.set(total, f64.add(total, sums[k]!));
      });
      return totals.map((total) => [f.local("v128", f64x2.splat(total))]);
    }
    const totals = Array.from({ length: count }, () => this.each(() => f64x2.splat(f64.const(0))));
    this.#forImages(pointers, (cursors) => {
      for (const pair of this.#pairs) {
        for (const [k, term] of terms(pair, ...this.#elements(cursors, pair)).entries()) {
          f.set(totals[k]![pair]!, f64x2.add(totals[k]![pair]!, term));
        }
      }
    });
    return totals;
  }

  /** Writes a term of each place. */
  write(pointers: readonly Address[], target: Address, term: Term<Vector>): void {
    const { f, float } = this;
    this.#forImages([...pointers, target], (cursors) => {
      const to = cursors.at(-1)!;
      const sources = cursors.slice(0, -1);
      if (this.columns === "run") writeTerms(f, float, sources, to, this.inner, (...elements) => term(0, ...elements));
      else for (const pair of this.#pairs) this.#store(to, pair, term(pair, ...this.#elements(sources, pair)));
    });
  }

  /** Numbers of the channels. */
  read(pointer: Address): Local<"v128">[] {
    const { f, float } = this;
    if (this.columns !== "run") return this.#pairs.map((pair) => this.#elements([pointer], pair)[0]!);
    const splat = float.vector.loadSplat(pointer);
    return [f.local("v128", float.type === "f32" ? f64x2.promoteLowF32x4(splat) : splat)];
  }

  put(pointer: Address, numbers: readonly Vector[]): void {
    for (const [pair, number] of numbers.entries()) this.#store(pointer, pair, number);
  }

  #elements(cursors: readonly Address[], pair: number): Local<"v128">[] {
    const { bytes, one, two } = this.#reader;
    const read = this.columns === 1 ? one : two;
    return cursors.map((cursor) => this.f.local("v128", read(cursor, 2 * pair * bytes)));
  }

  #store(pointer: Address, pair: number, number: Vector): void {
    const { f, float } = this;
    const isF32 = float.type === "f32";
    const narrowed = isF32 ? f32x4.demoteF64x2Zero(number) : number;
    const to = i32.add(pointer, 2 * pair * float.bytes);
    if (this.columns === "run" || this.columns === 1) f.do(float.lowest.store(to, narrowed));
    else f.do(isF32 ? v128.store64Lane(to, narrowed, 0) : v128.store(to, narrowed));
  }

  #forImages(pointers: readonly Address[], body: (cursors: readonly Local<"i32">[]) => void): void {
    const { f } = this;
    const cursors = pointers.map((pointer) => f.local("i32", pointer));
    const left = f.local("i32", this.outer);
    const steps = cursors.map((cursor) => [cursor, this.stride] as const);
    f.walk(left, 1, steps, () => body(cursors));
  }
}

type Body = (f: FunctionBuilder, channels: Channels, count: Vector, eps: Vector, slices: Local<"i32">[]) => void;

/**
 * The exports `runs`, of which items are channels, and `columns`, of which they are groups of 8. `large` slices have a value for each
 * place, the others for each channel.
 */
function emitChannels(dtype: ComputeDType, target: Target, large: readonly boolean[], body: Body): ModuleBuilder {
  const float = floatOf(dtype);
  const module = new ModuleBuilder(target);
  const slices = large.map(() => "i32" as const);
  const types = ["i32", "i32", "i32", "f64", "f64", ...slices] as const;
  const emitOf = (columns: Columns) =>
    module.function({ parameters: types }, (f, outer, stride, inner, count, eps, ...pointers) => {
      const channels = new Channels(f, float, columns, outer, stride, inner);
      const splat = (value: Local<"f64">) => f.local("v128", f64x2.splat(value));
      body(f, channels, splat(count as Local<"f64">), splat(eps as Local<"f64">), pointers as Local<"i32">[]);
    });
  const define = (name: string, together: number, parts: readonly Columns[]) => {
    const functions = parts.map((columns) => [columns, emitOf(columns)] as const);
    module.items(name, ["i32", ...types], (f, item, all, outer, stride, inner, count, eps, ...pointers) => {
      const first = f.local("i32", i32.mul(item, together));
      const left = f.least(i32.sub(all, first), together);
      const at = f.local("i32", i32.mul(first, float.bytes));
      const places = f.local("i32", i32.mul(at, inner as Local<"i32">));
      const cursors = (pointers as Local<"i32">[]).map((pointer, k) =>
        f.local("i32", i32.add(pointer, large[k] ? places : at)),
      );
      for (const [columns, call] of functions) {
        const channels = columns === "run" ? 1 : columns;
        const steps = cursors.map((cursor) => [cursor, channels * float.bytes] as const);
        f.walk(left, channels, steps, () => f.do(call(outer, stride, inner, count, eps, ...cursors)));
      }
    });
  };
  define("runs", 1, ["run"]);
  define("columns", 8, [8, 2, 1]);
  return module;
}

function run(
  execution: Parameters<KernelSource<"batchNorm">["launch"]>[1],
  { kernel, outer, channels, inner, eps }: Launch<"batchNorm" | "batchNormGrad">,
  ...slices: readonly Launch<"batchNorm">["input"][]
): void {
  const stride = channels * inner * floatOf(kernel.spec.dtype).bytes;
  const name = inner === 1 ? "columns" : "runs";
  const range = inner === 1 ? Math.ceil(channels / 8) : channels;
  const split = { range, work: 4 * outer * channels * inner };
  execution.run(name, split, channels, outer, stride, inner, outer * inner, eps, ...slices);
}

const { add, div, mul, sqrt, sub } = f64x2;

function emit({ dtype }: Spec<"batchNorm">, target: Target): ModuleBuilder {
  const large = [true, false, false, true, false, false];
  return emitChannels(dtype, target, large, (f, channels, count, eps, slices) => {
    const [input, weight, bias, output, means, variances] = slices as Local<"i32">[];
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
    const [input, weight, means, variances, gradient, dx, dweight, dbias] = slices as Local<"i32">[];
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

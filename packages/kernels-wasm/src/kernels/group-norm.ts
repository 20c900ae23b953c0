/** Normalisation of groups of channels of each sample and its gradient, in float64: the sum of each channel's run, runs in order. */
import type { ComputeDType, Launch, Spec } from "@opt/core/backend";
import { type FunctionBuilder, f64, f64x2, i32, type Local, ModuleBuilder, type Value, v128 } from "../assembler";
import type { KernelSource, Target } from "../kernel";
import { type Float, floatOf, vectorOf } from "./float";
import { sumsOfRow } from "./reduce/sum";
import { walkBlocks } from "./row";

type Vector = Value<"v128">;
type Pointer = Local<"i32">;
type Terms<R> = (...elements: Local<"v128">[]) => R;

/** Where a slice has a value for: each place, each channel, each channel of each sample, or each group of each sample. */
type Extent = "places" | "channels" | "runs" | "groups";

/** A group: runs of `inner` places, one after the other. */
class Group {
  constructor(
    private readonly f: FunctionBuilder,
    private readonly float: Float,
    private readonly size: Pointer,
    private readonly inner: Pointer,
    readonly count: Local<"f64">,
    readonly eps: Local<"f64">,
  ) {}

  /** Goes through the runs with pointers at their places and at their numbers. */
  runs(places: readonly Pointer[], numbers: readonly Pointer[], body: (...cursors: Pointer[]) => void): void {
    const { f, float, size, inner } = this;
    const cursors = [...places, ...numbers].map((pointer) => f.local("i32", pointer));
    const stride = f.local("i32", i32.mul(inner, float.bytes));
    const steps = cursors.map((cursor, k) => [cursor, k < places.length ? stride : float.bytes] as const);
    f.walk(f.local("i32", size), 1, steps, () => body(...cursors));
  }

  /** The sums of terms along a run. */
  sums(pointers: readonly Pointer[], count: number, terms: Terms<readonly Vector[]>): Local<"f64">[] {
    return sumsOfRow(this.f, this.float, pointers, this.inner, count, (step, ...cursors) => {
      const sources = cursors.map((cursor) => step.pairs(cursor));
      const byPair = sources[0]!.map((_, half) => terms(...sources.map((pairs) => pairs[half]!)));
      return Array.from({ length: count }, (_, k) => byPair.map((pair) => pair[k]!));
    });
  }

  /** The sum of a term over the group. */
  sum(pointer: Pointer, term: Terms<Vector>): Local<"f64"> {
    const total = this.f.local("f64", 0);
    this.runs([pointer], [], (at) => {
      const [sum] = this.sums([at!], 1, (x) => [term(x)]);
      this.f.set(total, f64.add(total, sum!));
    });
    return total;
  }

  /** Writes a term of each place of a run. */
  write(target: Pointer, pointers: readonly Pointer[], term: Terms<Vector>): void {
    const { f, float, inner } = this;
    walkBlocks(f, float, [target, ...pointers], inner, 2, (steps, to, ...cursors) => {
      for (const step of steps) {
        const sources = cursors.map((cursor) => step.pairs(cursor));
        const pairs = sources[0]!.map((_, half) => term(...sources.map((each) => each[half]!)));
        step.store(to!, vectorOf(float, pairs));
      }
    });
  }

  splat(value: Value<"f64">): Local<"v128"> {
    return this.f.local("v128", f64x2.splat(value));
  }

  /** A number of the dtype, in both lanes. */
  read(pointer: Pointer): Local<"v128"> {
    const { f, float } = this;
    const splat = float.vector.loadSplat(pointer);
    return f.local("v128", float.type === "f32" ? f64x2.promoteLowF32x4(splat) : splat);
  }

  put(pointer: Pointer, pair: Vector): void {
    this.f.do(this.float.lowest.store(pointer, vectorOf(this.float, [pair, pair])));
  }
}

type Body = (f: FunctionBuilder, group: Group, slices: Pointer[]) => void;

/** The export `run`, of which items are the groups of all samples. */
function emitGroups(dtype: ComputeDType, target: Target, extents: readonly Extent[], body: Body): ModuleBuilder {
  const float = floatOf(dtype);
  const module = new ModuleBuilder(target);
  const types = ["i32", "i32", "i32", "f64", "f64", ...extents.map(() => "i32" as const)] as const;
  module.items("run", types, (f, item, ...given) => {
    const [groups, size, inner] = given as unknown as [Pointer, Pointer, Pointer];
    const [count, eps] = given.slice(3) as unknown as [Local<"f64">, Local<"f64">];
    const slices = given.slice(5) as unknown as Pointer[];
    const first = f.local("i32", i32.mul(item, size));
    const firsts: Readonly<Record<Extent, Pointer>> = {
      places: f.local("i32", i32.mul(first, inner)),
      channels: f.local("i32", i32.mul(i32.remU(item, groups), size)),
      runs: first,
      groups: item,
    };
    const pointers = slices.map((slice, k) =>
      f.local("i32", i32.add(slice, i32.mul(firsts[extents[k]!], float.bytes))),
    );
    body(f, new Group(f, float, size, inner, count, eps), pointers);
  });
  return module;
}

function run(
  execution: Parameters<KernelSource<"groupNorm">["launch"]>[1],
  { outer, channels, inner, groups, eps }: Launch<"groupNorm" | "groupNormGrad">,
  ...slices: readonly Launch<"groupNorm">["input"][]
): void {
  const size = channels / groups;
  const split = { range: outer * groups, work: 4 * outer * channels * inner };
  execution.run("run", split, groups, size, inner, size * inner, eps, ...slices);
}

const { add, div, mul, sqrt, sub } = f64x2;

function emit({ dtype }: Spec<"groupNorm">, target: Target): ModuleBuilder {
  const extents = ["places", "channels", "channels", "places", "groups", "groups"] as const;
  return emitGroups(dtype, target, extents, (f, group, slices) => {
    const [input, weight, bias, output, means, variances] = slices as Pointer[];
    const mean = group.splat(
      f64.div(
        group.sum(input!, (x) => x),
        group.count,
      ),
    );
    const squares = group.sum(input!, (x) => {
      const difference = f.local("v128", sub(x, mean));
      return mul(difference, difference);
    });
    const variance = group.splat(f64.div(squares, group.count));
    const deviation = f.local("v128", sqrt(add(variance, group.splat(group.eps))));
    group.runs([input!, output!], [weight!, bias!], (x, y, w, b) => {
      const scale = f.local("v128", div(group.read(w!), deviation));
      const shift = group.read(b!);
      group.write(y!, [x!], (each) => add(mul(sub(each, mean), scale), shift));
    });
    group.put(means!, mean);
    group.put(variances!, variance);
  });
}

/** With h = (x - mean) rstd and q = weight g: dx = rstd (q - mean(q) - h mean(q h)), of each run dweight = sum(g h), dbias = sum(g). */
function emitGrad({ dtype }: Spec<"groupNormGrad">, target: Target): ModuleBuilder {
  const extents = ["places", "channels", "groups", "groups", "places", "places", "runs", "runs"] as const;
  return emitGroups(dtype, target, extents, (f, group, slices) => {
    const [input, weight, means, variances, gradient, dx, dweight, dbias] = slices as Pointer[];
    const mean = group.read(means!);
    const count = group.splat(group.count);
    // Of nothing the variance is NaN, and sums are 0.
    const isSome = f.local("v128", f64x2.ne(count, f64x2.splat(f64.const(0))));
    const one = f64x2.splat(f64.const(1));
    const deviation = sqrt(add(group.read(variances!), group.splat(group.eps)));
    const rstd = f.local("v128", v128.and(div(one, deviation), isSome));
    const [total, along] = [group.splat(f64.const(0)), group.splat(f64.const(0))];
    group.runs([gradient!, input!], [weight!, dweight!, dbias!], (g, x, w, toWeight, toBias) => {
      const [sum, product] = group
        .sums([g!, x!], 2, (each, place) => [each, mul(each, sub(place, mean))])
        .map((each) => group.splat(each));
      const scale = group.read(w!);
      f.set(total, add(total, mul(scale, sum!)));
      f.set(along, add(along, mul(scale, product!)));
      group.put(toWeight!, f.local("v128", mul(product!, rstd)));
      group.put(toBias!, sum!);
    });
    const shift = f.local("v128", div(mul(total, rstd), count));
    const slope = f.local("v128", div(mul(mul(mul(along, rstd), rstd), rstd), count));
    group.runs([gradient!, input!, dx!], [weight!], (g, x, to, w) => {
      const scale = f.local("v128", mul(group.read(w!), rstd));
      group.write(to!, [g!, x!], (each, place) => sub(sub(mul(scale, each), shift), mul(sub(place, mean), slope)));
    });
  });
}

export const groupNorm: KernelSource<"groupNorm"> = {
  emit,
  launch(launch, execution) {
    const { input, weight, bias, output, mean, variance } = launch;
    run(execution, launch, input, weight, bias, output, mean, variance);
  },
};

export const groupNormGrad: KernelSource<"groupNormGrad"> = {
  emit: emitGrad,
  launch(launch, execution) {
    const { input, weight, mean, variance, gradient, inputGradient, weightGradient, biasGradient } = launch;
    run(execution, launch, input, weight, mean, variance, gradient, inputGradient, weightGradient, biasGradient);
  },
};

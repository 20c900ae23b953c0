/** What each part of the contract suite is given: a device, a dtype, and how closely it must agree. */
import {
  type Backend,
  type ComputeDType,
  type Kernel,
  type Kind,
  type LaunchArguments,
  openJsBackend,
  type Rule,
  type Spec,
  specKey,
  type TypedArray,
} from "@opt/core/backend";
import { expect, it } from "vitest";
import type { Tolerance } from "../numbers/compare";
import { type SeededOptions, seededArray } from "../numbers/seeded";
import "../numbers/matcher";
import { sample, triesAll } from "../sample";
import { guardedLaunch, LAYOUTS, type Layout, type Regions, type Results, type Slices } from "./guarded-launch";

export interface ContractTolerances {
  /** Optimizer rules, against the interpreter. */
  readonly rule: Tolerance;
  /** Maps of the ops of rules, against the interpreter; also gather, unfold, max: whatever rounds nothing. */
  readonly map: Tolerance;
  /** Maps of exp, log, tanh, erf, sin, cos, pow, log1p and expm1, against the interpreter. */
  readonly transcendental: Tolerance;
  /** softmax, layerNorm, crossEntropy and their gradients, against float64. */
  readonly rows: Tolerance;
  /** Additions in a given order: scatterAdd. */
  readonly ordered: Tolerance;
  /** Sums in any order (reduce, sumSquares, fold, and matmul where it is not portable): |error| <= sums * epsilon * sum of magnitudes. */
  readonly sums: number;
}

/** What exact backends keep, and what others (WebGPU) keep unless they state something else. */
export function defaultTolerances(dtype: ComputeDType, exact: boolean): ContractTolerances {
  const bounded = { absolute: 1e-6, relative: 1e-5 };
  if (!exact)
    return { rule: bounded, map: bounded, transcendental: bounded, rows: bounded, ordered: bounded, sums: 16 };
  return {
    rule: "bits",
    map: "bits",
    transcendental: dtype === "f32" ? "bits" : { absolute: 1e-300, relative: 1e-12 },
    rows: dtype === "f32" ? bounded : { absolute: 1e-14, relative: 1e-12 },
    ordered: "bits",
    sums: 16,
  };
}

/** Sizes below, at and beyond vector widths and blocks: 1027 is four blocks of 256 and a tail of 3. */
export const SIZES = [0, 1, 3, 5, 17, 1027] as const;

/** More than 65,535, the limit of 16-bit counters and of one dimension of a GPU grid. */
export const LARGE = 66_003;

export class ContractContext {
  readonly #kernels = new Map<string, Kernel>();
  #opened: Backend | undefined;
  #launches = 0;

  constructor(
    private readonly name: string,
    readonly dtype: ComputeDType,
    readonly rules: readonly Rule[],
    /** Whether NaN, infinities, -0, subnormals and extreme magnitudes are part of the contract here. */
    readonly specials: boolean,
    readonly tolerances: ContractTolerances,
    /** See `ContractDevice`. */
    private readonly edge: boolean,
    /** See `ContractDevice`. */
    readonly portable: boolean,
    /** See `ContractDevice`. */
    private readonly sampled: boolean,
  ) {}

  get backend(): Backend {
    if (this.#opened === undefined) throw new Error("the contract's backend is not open yet");
    return this.#opened;
  }

  /** Whether sums are those of js to the bit. js need not be compared with itself. */
  get hasWords(): boolean {
    return this.specials && this.name !== "js";
  }

  /** Whether products and rows are, which is so in float32. */
  get hasPortableWords(): boolean {
    return this.portable && this.dtype === "f32" && this.name !== "js";
  }

  use(backend: Backend): void {
    this.#opened = backend;
    this.#kernels.clear();
  }

  /** Of a table, what is tried in this dtype: numbers of elements beyond 16 bits are counted alike in both, so float32 tries them. */
  cases<Case>(table: readonly Case[]): readonly Case[] {
    if (this.sampled) return sample(table, 5);
    if (triesAll || this.dtype === "f32") return table;
    return table.filter((each) => !JSON.stringify(each).includes(String(LARGE)));
  }

  /** Of a large table, what this run tries: in float64 half as much, and other cases, because most of a kernel is of no dtype. */
  sample<Case>(table: readonly Case[]): readonly Case[] {
    if (triesAll || this.dtype === "f32") return sample(table);
    const cases = this.cases(table);
    return cases.filter((_, i) => i % 8 === Math.min(4, cases.length - 1));
  }

  /** A test of special values: skipped where they are no part of the contract. */
  itWithSpecials(name: string, body: () => Promise<void>): void {
    if (this.specials) it(name, body);
    else it(name, ({ skip }) => skip("NaN, infinities and subnormals are left open by devices that are not exact"));
  }

  /** A dtype's array: seeded numbers, or empty space for an output. */
  seeded(size: number, seed: number, options: Omit<SeededOptions, "seed"> = {}): TypedArray {
    return seededArray(this.dtype, size, { ...options, seed });
  }

  empty(size: number): TypedArray {
    return this.dtype === "f64" ? new Float64Array(size) : new Float32Array(size);
  }

  /** The tolerance of a sum of terms of which the magnitudes add up to `magnitude`. */
  sumTolerance(magnitude: number): Tolerance {
    const epsilon = this.dtype === "f64" ? 2 ** -52 : 2 ** -23;
    return { absolute: this.tolerances.sums * epsilon * magnitude, relative: epsilon };
  }

  /** Compiled once per key, as core does. */
  kernel<K extends Kind>(spec: Spec<K>): Kernel<K> {
    const key = specKey(spec as unknown as Spec);
    let kernel = this.#kernels.get(key);
    if (kernel === undefined) {
      kernel = this.backend.kernel(spec as unknown as Spec);
      this.#kernels.set(key, kernel);
    }
    return kernel as Kernel<K>;
  }

  #layouts(regions: Regions): readonly Layout[] {
    const arrays = arraysOf(regions);
    if (this.edge) return arrays.map((_, region) => region);
    const isLarge = arrays.reduce((sum, array) => sum + array.length, 0) > LARGE;
    if (isLarge) return LAYOUTS.slice(0, 1);
    return triesAll ? LAYOUTS : [LAYOUTS[this.#launches++ % LAYOUTS.length]!];
  }

  /** Launches in every memory layout: all words, or those of the outputs of these names, must be those of js. */
  async checkWords<K extends Kind, R extends Regions>(
    spec: Spec<K>,
    regions: R,
    launch: (slices: Slices<R>) => LaunchArguments[K],
    names?: readonly (keyof Results<R> & string)[],
  ): Promise<void> {
    const expected = await wordsOf(spec, regions, launch);
    await this.check(spec, regions, launch, (results, label) => {
      for (const name of names ?? (Object.keys(expected) as (keyof Results<R> & string)[])) {
        expect(results[name], `${name}, ${label}`).toAgreeWith(expected[name]);
      }
    });
  }

  /** Launches in every memory layout (large ones in one) and hands each result to `verify`. */
  async check<K extends Kind, R extends Regions>(
    spec: Spec<K>,
    regions: R,
    launch: (slices: Slices<R>) => LaunchArguments[K],
    verify: (results: Results<R>, label: string) => void,
  ): Promise<void> {
    for (const layout of this.#layouts(regions)) {
      const results = await guardedLaunch(this.backend, this.kernel(spec), regions, layout, launch);
      verify(results, `memories ${layout}`);
    }
  }
}

/** Launches a spec on js, whose words are those of every exact device. */
async function wordsOf<K extends Kind, R extends Regions>(
  spec: Spec<K>,
  regions: R,
  launch: (slices: Slices<R>) => LaunchArguments[K],
): Promise<Results<R>> {
  const js = openJsBackend();
  return guardedLaunch(js, js.kernel(spec as unknown as Spec) as Kernel<K>, regions, "apart", launch);
}

function arraysOf({ input, update, output }: Regions): TypedArray[] {
  return Object.values({ ...input, ...update, ...output });
}

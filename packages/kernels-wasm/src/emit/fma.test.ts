import { type ComputeDType, fma32, fma64 } from "@opt/core/backend";
import { SPECIALS } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { i32, ModuleBuilder, v128 } from "../assembler";
import { HOST_FUNCTIONS } from "../host";
import type { Target } from "../kernel";
import { probeTarget } from "../target";
import { emitFma, loadFma } from "./fma";

const BATCH = 4096;
const ARRAYS = { f32: Float32Array, f64: Float64Array };

/** A module that computes BATCH elements of a, b and c, one array after the other, into a fourth. */
function compile(dtype: ComputeDType, target: Target) {
  const Numbers = ARRAYS[dtype];
  const bytes = BATCH * Numbers.BYTES_PER_ELEMENT;
  const module = new ModuleBuilder({ shared: false });
  const emitted = emitFma(module, dtype, target);
  module.function({ parameters: [], export: "run" }, (f) => {
    const fma = emitted(f);
    const i = f.local("i32");
    const at = (k: number) => v128.load(i32.add(i, k * bytes));
    f.for(i, 0, bytes, 16, () => f.do(v128.store(i32.add(i, 3 * bytes), fma(at(0), at(1), at(2)))));
  });
  const memory = new WebAssembly.Memory({ initial: 4, maximum: 4 });
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module.build()), {
    env: { memory, ...HOST_FUNCTIONS },
  });
  const array = (k: number) => new Numbers(memory.buffer, k * bytes, BATCH);
  return { run: exports.run as () => void, a: array(0), b: array(1), c: array(2), result: array(3) };
}

let state = 1;
const next = () => {
  state = (Math.imul(state, 1664525) + 1013904223) | 0;
  return (state >>> 0) / 2 ** 32;
};
const sign = () => (next() < 0.5 ? -1 : 1);
const below = (limit: number) => Math.floor(next() * limit);
type Triple = readonly [number, number, number];

/** Any three numbers of comparable size. */
const anything = (dtype: ComputeDType) => (): Triple => {
  const range = dtype === "f32" ? 60 : 480;
  const [e, d] = [below(2 * range) - range, below(2 * range) - range];
  const number = (exponent: number) => sign() * (1 + next() + next() * 2 ** -30) * 2 ** exponent;
  return [number(e), number(d), number(e + d + below(60) - 30)];
};

/** c plus or minus almost exactly half of its last place: the product is off by i * i units far below float64's reach. */
const nearTies = (dtype: ComputeDType) => (): Triple => {
  const [digits, lowest, range] = dtype === "f32" ? [24, -149, 250] : [53, -1074, 2000];
  const place = Math.max(lowest + below(range), lowest); // exponent of c's last digit
  const i = below(8);
  const split = Math.floor((place - 1) / 2);
  const c =
    sign() * (2 ** (digits - 1) + below(2 ** 20)) * 2 ** Math.max(place, -1000) * 2 ** Math.min(place + 1000, 0);
  const b = 1 - i * 2 ** (1 - digits);
  return [sign() * (1 + i * 2 ** (1 - digits)) * 2 ** split, b * 2 ** (place - 1 - split), c];
};

/** Subnormal sums, where the tie is at a fixed place: halves of the smallest number, and almost. */
const subnormalTies = (dtype: ComputeDType) => (): Triple => {
  const [digits, lowest] = dtype === "f32" ? [24, -149] : [53, -1074];
  const half = Math.floor(lowest / 2);
  const a = (1 + 2 * below(4) + below(3) * 2 ** (1 - digits)) * 2 ** half;
  const b = sign() * (1 - below(3) * 2 ** -digits) * 2 ** (lowest - 1 - half);
  return [a, b, sign() * below(1000) * 2 ** lowest];
};

const specials = (dtype: ComputeDType) => {
  const values = [...SPECIALS[dtype]];
  const pick = () => values[below(values.length)]!;
  return (): Triple => [pick(), pick(), next() < 0.5 ? pick() : next()];
};

const here = probeTarget(false);
const emulated: Target = { ...here, fused: { f32: false, f64: false } };
await loadFma(emulated);

const targets = [["emulated", emulated] as const, ["as this engine does it", here] as const];

describe.each(targets)("fma, %s", (_name, target) => {
  describe.each(["f32", "f64"] as const)("%s", (dtype) => {
    const fma = dtype === "f32" ? fma32 : fma64;
    const { run, a, b, c, result } = compile(dtype, target);
    it.each([
      ["numbers", anything(dtype), 60],
      ["almost ties", nearTies(dtype), 60],
      ["subnormal sums", subnormalTies(dtype), 20],
      ["special values", specials(dtype), 10],
    ] as const)("rounds once on %s", (_kind, triple, batches) => {
      for (let batch = 0; batch < batches; batch++) {
        for (let i = 0; i < BATCH; i++) [a[i], b[i], c[i]] = triple();
        run();
        const wrong = result.findIndex((value, i) => !Object.is(value, fma(a[i]!, b[i]!, c[i]!)));
        expect(wrong < 0 ? [] : [a[wrong], b[wrong], c[wrong], result[wrong]]).toEqual([]);
      }
    });
  });
});

it("almost ties are such that rounding twice errs", () => {
  const triples = Array.from({ length: 1000 }, nearTies("f32")).map((triple) => triple.map(Math.fround));
  const twice = triples.filter(([a, b, c]) => Math.fround(a! * b! + c!) !== fma32(a!, b!, c!));
  expect(twice.length).toBeGreaterThan(100);
});

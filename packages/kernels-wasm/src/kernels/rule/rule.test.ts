import {
  abs,
  add,
  defineRule,
  div,
  fma,
  less,
  maximum,
  minimum,
  mul,
  neg,
  type Rule,
  sqrt,
  sub,
  where,
} from "@opt/core";
import { type ComputeDType, interpretRule, type Slice, type TypedArray } from "@opt/core/backend";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openWasmBackend, type WasmBackend } from "../../backend";

const adamw = defineRule({
  name: "adamw",
  buffers: ["param", "grad", "expAvg", "expAvgSq", "maxExpAvgSq"],
  scalars: ["decay", "oneMinusBeta1", "beta2", "oneMinusBeta2", "negStepSize", "biasCorrection2Sqrt", "eps"],
  update({ param, grad, expAvg, expAvgSq, maxExpAvgSq }, h) {
    const m = fma(h.oneMinusBeta1, sub(grad, expAvg), expAvg);
    const v = fma(mul(h.oneMinusBeta2, grad), grad, mul(expAvgSq, h.beta2));
    const vMax = maximum(v, maxExpAvgSq);
    const denom = add(div(sqrt(vMax), h.biasCorrection2Sqrt), h.eps);
    const p = add(mul(param, h.decay), div(mul(h.negStepSize, m), denom));
    return { expAvg: m, expAvgSq: v, maxExpAvgSq: vMax, param: p };
  },
});

const nadam = defineRule({
  name: "nadam",
  buffers: ["param", "grad", "expAvg", "expAvgSq"],
  scalars: [
    "weightDecay",
    "oneMinusBeta1",
    "beta2",
    "oneMinusBeta2",
    "biasCorrection2",
    "eps",
    "gradStep",
    "momentStep",
  ],
  update({ param, grad, expAvg, expAvgSq }, h) {
    const g = fma(h.weightDecay, param, neg(grad));
    const m = fma(h.oneMinusBeta1, sub(g, expAvg), expAvg);
    const v = fma(mul(h.oneMinusBeta2, g), g, mul(expAvgSq, h.beta2));
    const denom = add(sqrt(div(v, h.biasCorrection2)), h.eps);
    const p = add(add(param, div(mul(h.gradStep, g), denom)), div(mul(h.momentStep, m), denom));
    return { param: p, expAvg: m, expAvgSq: v };
  },
});

const lion = defineRule({
  name: "lion",
  buffers: ["param", "grad", "expAvg"],
  scalars: ["lr", "oneMinusBeta1", "oneMinusBeta2", "bound"],
  update({ param, grad, expAvg }, { lr, oneMinusBeta1, oneMinusBeta2, bound }) {
    const c = fma(oneMinusBeta1, sub(grad, expAvg), expAvg);
    const sign = where(less(c, 0), -1, where(less(0, c), 1, mul(c, 0)));
    const step = minimum(maximum(mul(sign, add(lr, abs(sub(bound, 1)))), neg(bound)), bound);
    return { param: sub(param, step), expAvg: fma(oneMinusBeta2, sub(grad, expAvg), expAvg) };
  },
});

const NUMBERS = { f32: Float32Array, f64: Float64Array };
const SPECIALS = {
  f32: [
    0,
    -0,
    1,
    -1,
    NaN,
    Infinity,
    -Infinity,
    1e-45,
    -1e-45,
    1.1754943508222875e-38,
    3.4028234663852886e38,
    -1e30,
    1e-20,
  ],
  f64: [
    0,
    -0,
    1,
    -1,
    NaN,
    Infinity,
    -Infinity,
    5e-324,
    -5e-324,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    -1e300,
    1e-170,
  ],
};

/** Every fourth number is special; numbers differ from buffer to buffer. */
function seeded(dtype: ComputeDType, length: number, seed: number): Float32Array | Float64Array {
  let state = seed * 2654435761 + 1;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return (state >>> 0) / 2 ** 32;
  };
  const numbers = new NUMBERS[dtype](length);
  for (let i = 0; i < length; i++) {
    const x = (next() - 0.5) * 10 ** Math.floor(next() * 6 - 4);
    numbers[i] = next() < 0.25 ? SPECIALS[dtype][Math.floor(next() * SPECIALS[dtype].length)]! : x;
  }
  return numbers;
}

const bytesOf = (array: TypedArray) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
const GUARD = 8;

/** Runs a rule on tensors of these sizes, each between guard elements, and expects the interpreter's bits and whole guards. */
function expectInterpretersBits(backend: WasmBackend, rule: Rule, dtype: ComputeDType, sizes: readonly number[]): void {
  const scalars = rule.scalars.map((_, i) => 0.9 - 0.1234567 * i);
  const tensors = sizes.map((size, t) => rule.buffers.map((_, slot) => seeded(dtype, size + 2 * GUARD, 31 * t + slot)));
  const memories = tensors.map((buffers) => buffers.map((buffer) => backend.allocate(buffer.byteLength)));
  for (const [t, buffers] of memories.entries()) {
    for (const [slot, memory] of buffers.entries()) backend.write(memory, 0, bytesOf(tensors[t]![slot]!));
  }
  const slices = memories.map((buffers, t) =>
    buffers.map(
      (memory): Slice => ({ memory, byteOffset: GUARD * tensors[t]![0]!.BYTES_PER_ELEMENT, length: sizes[t]! }),
    ),
  );
  const kernel = backend.kernel({ kind: "rule", rule, dtype });
  const { used } = backend.memory;
  backend.launch({ kind: "rule", kernel, tensors: slices, scalars });
  expect(backend.memory.used, "a launch gives back what it borrowed").toBe(used);
  tensors.forEach((buffers, t) => {
    const inner = buffers.map((buffer) => buffer.subarray(GUARD, GUARD + sizes[t]!) as TypedArray);
    interpretRule(rule.program, dtype, inner, scalars);
    buffers.forEach((expected, slot) => {
      const memory = memories[t]![slot]!;
      const actual = new NUMBERS[dtype](backend.readSync(memory, 0, memory.bytes).buffer as ArrayBuffer);
      const wrong = expected.findIndex((value, i) => !Object.is(value, actual[i]));
      expect(wrong < 0 ? [] : [t, rule.buffers[slot], wrong - GUARD, actual[wrong], expected[wrong]]).toEqual([]);
      backend.free(memory);
    });
  });
}

const emulated = { fused: { f32: false, f64: false } };

describe.each([
  ["one thread", { threads: 1 }],
  ["two threads", { threads: 2 }],
  ["two threads, no fused multiply-add", { threads: 2, target: emulated }],
])("rules with %s", (_name, options) => {
  let backend: WasmBackend;
  beforeAll(async () => {
    backend = await openWasmBackend(options);
  });
  afterAll(() => backend.close());

  const rules: Rule[] = [adamw, nadam, lion];
  describe.each(rules.map((rule) => [rule.name, rule] as const))("%s", (_rule, rule) => {
    it.each([0, 1, 3, 4, 5, 15, 16, 17, 1027, 70_000])("gives the interpreter's f32 bits on %i elements", (size) => {
      expectInterpretersBits(backend, rule, "f32", [size]);
    });
    it.each([0, 1, 2, 3, 1027])("gives the interpreter's f64 bits on %i elements", (size) => {
      expectInterpretersBits(backend, rule, "f64", [size]);
    });
    it("updates many tensors of odd sizes in one launch", () => {
      const sizes = Array.from({ length: 150 }, (_, t) => (t * 37) % 1009);
      expectInterpretersBits(backend, rule, "f32", [...sizes, 0, 20_011, 1, 0]);
    });
  });

  it("uses the threads it was asked for", () => expect(backend.threads).toBe(options.threads));
});

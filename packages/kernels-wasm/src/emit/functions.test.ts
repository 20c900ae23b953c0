import { evaluateOp } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { ModuleBuilder, v128 } from "../assembler";
import { HOST_FUNCTIONS, type HostFunction } from "../host";
import { emitFunction } from "./functions";

type Function = Exclude<HostFunction, "fma64">;

/** A module that computes one vector: from byte 0 (and 16 for pow) to byte 32. */
function compile(op: Function, dtype: "f32" | "f64") {
  const module = new ModuleBuilder({ shared: false });
  const emitted = emitFunction(module, op, dtype, {
    shared: false,
    relaxedSimd: false,
    fused: { f32: false, f64: false },
  });
  module.function({ parameters: [], export: "run" }, (f) => {
    const call = emitted(f);
    f.do(v128.store(32, op === "pow" ? call(v128.load(0), v128.load(16)) : call(v128.load(0))));
  });
  const memory = new WebAssembly.Memory({ initial: 1, maximum: 1 });
  const imports = { env: { memory, ...HOST_FUNCTIONS } };
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(module.build()), imports);
  const numbers = dtype === "f32" ? new Float32Array(memory.buffer) : new Float64Array(memory.buffer);
  return { run: exports.run as () => void, numbers };
}

const bits = new Int32Array(1);
const float = new Float32Array(bits.buffer);

/** Distance to the next float32 at a value. */
function ulp(value: number): number {
  const exponent = Math.max(Math.floor(Math.log2(Math.abs(Math.fround(value)))), -126);
  return 2 ** (exponent - 23);
}

/** Largest error in ulp over vectors of inputs; special results must be the same, up to the sign of zero. */
function worstError(op: Function, inputs: () => readonly [number, number], count: number): number {
  const { run, numbers } = compile(op, "f32");
  let worst = 0;
  for (let i = 0; i < count; i++) {
    for (let lane = 0; lane < 4; lane++) [numbers[lane], numbers[4 + lane]] = inputs();
    run();
    for (let lane = 0; lane < 4; lane++) {
      const [x, y, actual] = [numbers[lane]!, numbers[4 + lane]!, numbers[8 + lane]!];
      const exact = evaluateOp(op, "f64", x, y);
      const rounded = Math.fround(exact);
      if (Object.is(rounded, actual)) continue;
      const error = Math.abs(actual - exact) / ulp(rounded === 0 ? 1e-45 : rounded);
      if (!(error <= worst)) worst = error;
      if (Number.isNaN(error)) throw new Error(`${op}(${x}, ${y}) is ${exact}, got ${actual}`);
    }
  }
  return worst;
}

const UNARY = ["exp", "log", "tanh", "erf", "sin", "cos"] as const;
const SPECIALS = [0, -0, 1, -1, NaN, Infinity, -Infinity, 1e-45, -1e-45, 1.17549435e-38, 3.40282347e38, -3.40282347e38];
const TRICKY = [
  88.72283,
  88.72284,
  -103.97207,
  -103.97208,
  -87.33655,
  0.70710677,
  Math.SQRT1_2,
  3.9192059,
  9.010913,
  16777216,
];
/** 16367173 * 2^72 is closer to a multiple of pi/2 than any other float32. */
const FAR = [16367173 * 2 ** 72, 2 ** 20, 2 ** 20 - 0.0625, 1048577.5, 1e22, 2 ** 127];

describe("functions of float32", () => {
  it.each(UNARY)("%s is within 1 ulp over all of float32", (op) => {
    let pattern = 0;
    const everywhere = () => {
      bits[0] = pattern;
      pattern = (pattern + 30_011) | 0;
      return [float[0]!, 0] as const;
    };
    expect(worstError(op, everywhere, 36_000)).toBeLessThan(1);
  });

  it.each(UNARY)("%s is within 1 ulp at special, boundary and huge values", (op) => {
    const values = [...SPECIALS, ...TRICKY, ...FAR].flatMap((x) => [x, -x]);
    let next = 0;
    expect(worstError(op, () => [values[next++ % values.length]!, 0], values.length)).toBeLessThan(1);
  });

  it("pow is C's at special values", () => {
    const values = [...SPECIALS, 2, -2, 3, -3, 0.5, -0.5, 16777215, 16777216, 1e10, -1e10, 0.99999994, 1.0000001];
    let next = 0;
    const pairs = () => {
      const pair = [values[next % values.length]!, values[Math.floor(next / values.length) % values.length]!] as const;
      next++;
      return pair;
    };
    expect(worstError("pow", pairs, values.length ** 2 / 4 + 1)).toBeLessThan(1);
  });

  it("pow is within 1 ulp wherever it is finite", () => {
    let state = 1;
    const next = () => {
      state = (Math.imul(state, 1664525) + 1013904223) | 0;
      return state >>> 0;
    };
    const pairs = () => {
      bits[0] = next() & 0x7f7fffff;
      const limit = 104 / Math.abs(Math.log(float[0]!));
      return [float[0]!, limit * (next() / 2 ** 31 - 1)] as const;
    };
    expect(worstError("pow", pairs, 50_000)).toBeLessThan(1);
  });
});

describe("functions of float64", () => {
  it.each([...UNARY, "pow"] as const)("%s is JavaScript's", (op) => {
    const { run, numbers } = compile(op, "f64");
    const values = [...SPECIALS, 0.5, -3.25, 700.1, 1e-300];
    for (const x of values) {
      numbers.set([x, 0.25, 2.5, x]);
      run();
      const expected = [evaluateOp(op, "f64", x, 2.5), evaluateOp(op, "f64", 0.25, x)];
      expect([numbers[4], numbers[5]]).toEqual(expected);
    }
  });
});

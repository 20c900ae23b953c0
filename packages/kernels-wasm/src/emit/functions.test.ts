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

const UNARY = ["exp", "log", "tanh", "erf", "sin", "cos", "log1p", "expm1"] as const;
const SPECIALS = [0, -0, 1, -1, NaN, Infinity, -Infinity, 1e-45, -1e-45, 1.17549435e-38, 3.40282347e38, -3.40282347e38];

it.each([...UNARY, "pow"] as const)("%s of float32 has the words of its definition in every lane", (op) => {
  const { run, numbers } = compile(op, "f32");
  const values = [...SPECIALS, 0.5, -3.25, 1e22, -(2 ** 20) - 1];
  values.forEach((x, i) => {
    for (let lane = 0; lane < 4; lane++) numbers[lane] = values[(i + lane) % values.length]!;
    numbers.fill(x, 4, 8);
    run();
    const expected = [0, 1, 2, 3].map((lane) => evaluateOp(op, "f32", numbers[lane]!, numbers[4 + lane]));
    expect([...numbers.subarray(8, 12)]).toEqual(expected);
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

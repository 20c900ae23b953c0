/** exp, log, tanh, erf, sin, cos and pow on vectors: float32 within 1 ulp by polynomials, float64 by JavaScript's. */
import type { ComputeDType } from "@opt/core/backend";
import {
  type FunctionBuilder,
  f32x4,
  f64x2,
  i32x4,
  type ModuleBuilder,
  shuffle32,
  type Value,
  v128,
} from "../assembler";
import type { HostFunction } from "../host";
import { ERF } from "./coefficients";
import { exp, log, pow, tanh } from "./exponential";
import { both, polynomial } from "./polynomial";
import { emitTrigonometry } from "./trigonometry";

type Vector = Value<"v128">;
type OnDoubles = (f: FunctionBuilder, ...operands: Vector[]) => Vector;
type OnFloats = (...operands: Vector[]) => Vector;

/**
 * How to compute a function in a module. What comes back writes it inside one of the module's functions, in line, so that its constants
 * are set outside of loops.
 */
export function emitFunction(
  module: ModuleBuilder,
  op: Exclude<HostFunction, "fma64">,
  dtype: ComputeDType,
): (f: FunctionBuilder) => OnFloats {
  if (dtype === "f64") {
    const host = callHost(module, op);
    return () => host;
  }
  switch (op) {
    case "exp":
      return onHalves(exp as OnDoubles);
    case "log":
      return onHalves(log as OnDoubles);
    case "tanh":
      return odd(onHalves(tanh as OnDoubles));
    case "erf":
      return odd(onHalves(erf as OnDoubles));
    case "sin":
      return odd(onHalves(emitTrigonometry(module, op) as OnDoubles));
    case "cos": {
      const ofMagnitude = onHalves(emitTrigonometry(module, op) as OnDoubles);
      return (f) => (x) => ofMagnitude(f)(f32x4.abs(x as Vector));
    }
    case "pow":
      return onHalves(pow as OnDoubles);
  }
}

/** erf of x >= 0; from 4 on it is 1 in float32. */
function erf(f: FunctionBuilder, x: Vector): Vector {
  const clamped = f.local("v128", f64x2.pmin(x, both(f, 4)));
  const powers = [f.local("v128", f64x2.mul(clamped, clamped))];
  return f64x2.mul(clamped, ERF.map((half) => polynomial(f, half, powers)).reduce(f64x2.div));
}

/** Four floats as two and two doubles. */
function onHalves(write: OnDoubles): (f: FunctionBuilder) => OnFloats {
  const lower = (x: Vector) => f64x2.promoteLowF32x4(x);
  const upper = (x: Vector) => f64x2.promoteLowF32x4(shuffle32(x, x, [2, 3, 2, 3]));
  return (f) =>
    (...operands) => {
      const whole = operands.map((operand) => f.local("v128", operand));
      const [low, high] = [lower, upper].map(
        (half): Vector => f.local("v128", write(f, ...whole.map((operand) => f.local("v128", half(operand))))),
      ) as [Vector, Vector];
      return shuffle32(f32x4.demoteF64x2Zero(low), f32x4.demoteF64x2Zero(high), [0, 1, 4, 5]);
    };
}

/** A function of magnitudes made odd: the sign bit is carried around it, so that -0 gives -0. */
function odd(ofMagnitude: (f: FunctionBuilder) => OnFloats): (f: FunctionBuilder) => OnFloats {
  return (f) => (x) => {
    const operand = f.local("v128", x as Vector);
    const sign = f.constant(i32x4.const([0, 1, 2, 3].map(() => 0x80000000)));
    return v128.xor(ofMagnitude(f)(f32x4.abs(operand)), v128.and(operand, sign));
  };
}

/** Lane by lane through an import. */
function callHost(module: ModuleBuilder, op: HostFunction): OnFloats {
  if (op === "pow") {
    const host = module.import(op, { parameters: ["f64", "f64"], result: "f64" });
    return module.function({ parameters: ["v128", "v128"], result: "v128" }, (_f, x, y) =>
      lanes((lane) => host(f64x2.extractLane(x, lane), f64x2.extractLane(y, lane))),
    ) as OnFloats;
  }
  const host = module.import(op, { parameters: ["f64"], result: "f64" });
  return module.function({ parameters: ["v128"], result: "v128" }, (_f, x) =>
    lanes((lane) => host(f64x2.extractLane(x, lane))),
  ) as OnFloats;
}

const lanes = (write: (lane: number) => Value<"f64">) => f64x2.replaceLane(f64x2.splat(write(0)), 1, write(1));

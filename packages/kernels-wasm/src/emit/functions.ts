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
import { emitPow, exp, log, tanh } from "./exponential";
import { both, polynomial } from "./polynomial";
import { emitTrigonometry } from "./trigonometry";

type Vector = Value<"v128">;
type OnDoubles = (f: FunctionBuilder, x: Vector) => Vector;

/** Adds a function to the module. Returns how to call it. */
export function emitFunction(
  module: ModuleBuilder,
  op: Exclude<HostFunction, "fma64">,
  dtype: ComputeDType,
): (...operands: Vector[]) => Vector {
  if (dtype === "f64") return callHost(module, op);
  switch (op) {
    case "exp":
      return onHalves(module, exp);
    case "log":
      return onHalves(module, log);
    case "tanh":
      return odd(module, onHalves(module, tanh));
    case "erf":
      return odd(module, onHalves(module, erf));
    case "sin":
      return odd(module, onHalves(module, emitTrigonometry(module, op)));
    case "cos": {
      const ofMagnitude = onHalves(module, emitTrigonometry(module, op));
      return (x) => ofMagnitude(f32x4.abs(x as Vector));
    }
    case "pow": {
      const pow = emitPow(module);
      return module.function({ parameters: ["v128", "v128"], result: "v128" }, (_f, x, y) =>
        demote(pow(lower(x), lower(y)), pow(upper(x), upper(y))),
      );
    }
  }
}

/** erf of x >= 0; from 4 on it is 1 in float32. */
function erf(f: FunctionBuilder, x: Vector): Vector {
  const clamped = f.local("v128", f64x2.pmin(x, both(4)));
  const u = f.local("v128", f64x2.sub(f64x2.mul(f64x2.mul(clamped, clamped), both(1 / 8)), both(1)));
  return f64x2.mul(clamped, polynomial(ERF, u));
}

const lower = (x: Vector) => f64x2.promoteLowF32x4(x);
const upper = (x: Vector) => f64x2.promoteLowF32x4(shuffle32(x, x, [2, 3, 2, 3]));
const demote = (low: Vector, high: Vector) =>
  shuffle32(f32x4.demoteF64x2Zero(low), f32x4.demoteF64x2Zero(high), [0, 1, 4, 5]);

/** Four floats as two and two doubles. */
function onHalves(module: ModuleBuilder, write: OnDoubles): (x: Vector) => Vector {
  const half = module.function({ parameters: ["v128"], result: "v128" }, write);
  return module.function({ parameters: ["v128"], result: "v128" }, (_f, x) => demote(half(lower(x)), half(upper(x))));
}

/** A function of magnitudes made odd: the sign bit is carried around it, so that -0 gives -0. */
function odd(module: ModuleBuilder, ofMagnitude: (x: Vector) => Vector): (x: Vector) => Vector {
  return module.function({ parameters: ["v128"], result: "v128" }, (f, x) => {
    const sign = f.local("v128", v128.and(x, i32x4.splat(0x80000000)));
    return v128.xor(ofMagnitude(f32x4.abs(x)), sign);
  });
}

/** Lane by lane through an import. */
function callHost(module: ModuleBuilder, op: HostFunction): (...operands: Vector[]) => Vector {
  if (op === "pow") {
    const host = module.import(op, { parameters: ["f64", "f64"], result: "f64" });
    return module.function({ parameters: ["v128", "v128"], result: "v128" }, (_f, x, y) =>
      lanes((lane) => host(f64x2.extractLane(x, lane), f64x2.extractLane(y, lane))),
    );
  }
  const host = module.import(op, { parameters: ["f64"], result: "f64" });
  return module.function({ parameters: ["v128"], result: "v128" }, (_f, x) =>
    lanes((lane) => host(f64x2.extractLane(x, lane))),
  );
}

const lanes = (write: (lane: number) => Value<"f64">) => f64x2.replaceLane(f64x2.splat(write(0)), 1, write(1));

/** The functions of core on vectors: float32 from their definitions, float64 by JavaScript's. */
import {
  type BitOp,
  type ComputeDType,
  type FunctionName,
  functionDefinition,
  type Op,
  type RuleOp,
} from "@opt/core/backend";
import { f32x4, f64x2, type ModuleBuilder, shuffle32, type Value, v128 } from "../assembler";
import type { HostFunction } from "../host";
import type { Target } from "../kernel";
import { emitArithmetic, type Operation, type Write } from "./arithmetic";
import { LANES } from "./lanes";
import { ProgramWriter } from "./program";

type Vector = Value<"v128">;

/**
 * How to compute a function in a module. What comes back writes it inside one of the module's functions, in line, so that its constants
 * are set outside of loops.
 */
export function emitFunction(
  module: ModuleBuilder,
  name: Exclude<FunctionName, "weight">,
  dtype: ComputeDType,
  target: Target,
): Write {
  if (dtype === "f64") {
    const host = callHost(module, name);
    return () => host;
  }
  const inReach = onHalves(emitDefinition(module, name, target));
  const { reach } = functionDefinition(name);
  if (reach === undefined) return inReach;
  const host = onHalves(() => callHost(module, name));
  const isBeyond = (x: Vector, limit: Vector) => f32x4.gt(f32x4.abs(x), limit);
  const limit = LANES.f32.constant(reach);
  const replaced = module.function({ parameters: ["v128", "v128"], result: "v128" }, (f, x, result) =>
    v128.bitselect(host(f)(x), result, isBeyond(x, limit)),
  );
  return (f) => {
    const compute = inReach(f);
    return (operand) => {
      const x = f.local("v128", operand as Vector);
      const result = f.local("v128", compute(x));
      f.if(v128.anyTrue(isBeyond(x, f.constant(limit))), () => f.set(result, replaced(x, result)));
      return result;
    };
  };
}

/** A definition as it is: on vectors of two float64, yet to be rounded, and `weight` on four float32. */
export function emitDefinition(module: ModuleBuilder, name: FunctionName, target: Target): Write {
  const { program, dtype } = functionDefinition(name);
  const { shape } = LANES[dtype];
  const ops = new Set(program.nodes.flatMap(({ op, args }) => (args.length > 0 ? [op as RuleOp | BitOp] : [])));
  // Without a fused multiply-add of the machine two roundings are fast, and near enough.
  const isPlain = (op: string) => op === "fma" && !target.fused[dtype];
  const plain: Write = () => (a, b, c) => shape.add(shape.mul(a!, b!), c!);
  const writers = [...ops].map((op) => [op, isPlain(op) ? plain : emitArithmetic(module, op, dtype, target)] as const);
  return (f) => {
    const operations = new Map<Op | BitOp, Operation>(writers.map(([op, write]) => [op, write(f)]));
    const writer = new ProgramWriter(f, program, dtype, () => operations, []);
    return (...operands) => {
      const inputs = operands.map((operand) => f.local("v128", operand));
      return f.local("v128", writer.element((slot) => inputs[slot]!)[0]!);
    };
  };
}

/** Four floats as two and two doubles. */
function onHalves(write: Write): Write {
  const lower = (x: Vector) => f64x2.promoteLowF32x4(x);
  const upper = (x: Vector) => f64x2.promoteLowF32x4(shuffle32(x, x, [2, 3, 2, 3]));
  return (f) => {
    const onDoubles = write(f);
    return (...operands) => {
      const whole = operands.map((operand) => f.local("v128", operand));
      const [low, high] = [lower, upper].map(
        (half): Vector => f.local("v128", onDoubles(...whole.map((operand) => half(operand)))),
      ) as [Vector, Vector];
      return f.local("v128", shuffle32(f32x4.demoteF64x2Zero(low), f32x4.demoteF64x2Zero(high), [0, 1, 4, 5]));
    };
  };
}

/** Lane by lane through an import. */
function callHost(module: ModuleBuilder, op: HostFunction): Operation {
  if (op === "pow") {
    const host = module.import(op, { parameters: ["f64", "f64"], result: "f64" });
    return module.function({ parameters: ["v128", "v128"], result: "v128" }, (_f, x, y) =>
      lanes((lane) => host(f64x2.extractLane(x, lane), f64x2.extractLane(y, lane))),
    ) as Operation;
  }
  const host = module.import(op, { parameters: ["f64"], result: "f64" });
  return module.function({ parameters: ["v128"], result: "v128" }, (_f, x) =>
    lanes((lane) => host(f64x2.extractLane(x, lane))),
  ) as Operation;
}

const lanes = (write: (lane: number) => Value<"f64">) => f64x2.replaceLane(f64x2.splat(write(0)), 1, write(1));

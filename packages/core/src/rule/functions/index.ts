/** The functions of float32: their definitions, from which every device has its code, so that all give the same bits. */
import type { ComputeDType } from "../../values/dtype";
import { Expression, TRANSCENDENTAL_OPS } from "../expression";
import { type Program, trace } from "../program";
import { erf } from "./error-function";
import { exp, expm1, log, log1p, pow, tanh, weight } from "./exponential";
import { cos, REACH, sin } from "./trigonometry";

/** The functions of maps, and `weight`: what a number counts for in a sum that the largest of them leads. */
export const FUNCTION_NAMES = [...TRANSCENDENTAL_OPS, "weight"] as const;

export type FunctionName = (typeof FUNCTION_NAMES)[number];

export interface FunctionDefinition {
  /** Of one number x, or of x and y. */
  readonly program: Program;
  /** In what it is computed. float64 is rounded to float32 at the end, but for numbers that are computed with further. */
  readonly dtype: ComputeDType;
  /** The magnitude of x beyond which the platform's function of float64 is used: no device has another's bits there. */
  readonly reach?: number;
}

const DEFINITIONS: Readonly<Record<FunctionName, (x: Expression, y: Expression) => Expression>> = {
  ...{ exp, log, tanh, erf, sin, cos, pow, log1p, expm1, weight },
};

const traced = new Map<FunctionName, FunctionDefinition>();

/** Traced when first asked for. */
export function functionDefinition(name: FunctionName): FunctionDefinition {
  let definition = traced.get(name);
  if (definition === undefined) {
    const [x, y] = [0, 1].map((slot) => new Expression("buffer", [], slot)) as [Expression, Expression];
    const expression = DEFINITIONS[name](x, y);
    definition = {
      program: trace(name === "pow" ? ["x", "y"] : ["x"], [], [{ slot: 0, expression }]),
      dtype: name === "weight" ? "f32" : "f64",
      ...(name === "sin" || name === "cos" ? { reach: REACH } : {}),
    };
    traced.set(name, definition);
  }
  return definition;
}

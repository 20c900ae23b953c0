/** JavaScript functions from text. A content security policy may forbid them. */
import { writeFunction } from "../emit/javascript";
import { fma32, fma64 } from "../rule/fma";
import { FUNCTION_NAMES, type FunctionName, functionDefinition } from "../rule/functions";
import { ARITHMETIC, BITS, evaluateFunction } from "../rule/interpret";
import { fromStored, toStored } from "../values/half";
import { sumColumns, sumOf } from "./sum";

/** Names that generated text may use. Functions of float32 come beside them, their names ending in 32. */
const LIBRARY = {
  ...ARITHMETIC,
  ...BITS,
  fma32,
  fma64,
  sumOf,
  sumColumns,
  from_bf16: fromStored("bf16"),
  to_bf16: toStored("bf16"),
  from_f16: fromStored("f16"),
  to_f16: toStored("f16"),
};

/** The function with this body, or undefined. */
export function generated(parameters: readonly string[], body: string): ((...args: unknown[]) => void) | undefined {
  const names = FUNCTION_NAMES.filter((name) => body.includes(`${name}32(`));
  const library = { ...LIBRARY, ...Object.fromEntries(names.map((name) => [`${name}32`, functionOf(name)])) };
  try {
    const make = new Function(
      ...Object.keys(library),
      `"use strict";\nreturn (${parameters.join(", ")}) => {\n${body}\n};`,
    );
    return make(...Object.values(library));
  } catch (error) {
    if (error instanceof EvalError) return undefined; // what a content security policy throws
    throw error;
  }
}

type FloatFunction = (x: number, y?: number) => number;

const functions = new Map<FunctionName, FloatFunction>();

/** A function of float32: its value in float64, yet to be rounded, and of `weight` in float32. */
export function functionOf(name: FunctionName): (x: number, y?: number) => number {
  let made = functions.get(name);
  if (made === undefined) {
    const definition = functionDefinition(name);
    made =
      (generated(definition.program.buffers, writeFunction(name, definition)) as FloatFunction | undefined) ??
      ((x, y) => evaluateFunction(name, x, y));
    functions.set(name, made);
  }
  return made;
}

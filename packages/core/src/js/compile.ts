/**
 * Compiles programs to JavaScript functions. Where a content security policy forbids making functions from text,
 * the interpreter runs instead: the same results, slower.
 */

import { writeMapLoop, writeRuleLoop } from "../emit/javascript";
import { interpret } from "../rule/interpret";
import type { Program } from "../rule/program";
import {
  interpreted,
  type StoredDType,
  type StoredFormats,
  type UpdateArrays,
  updateOf,
  withMirror,
} from "../rule/stored";
import type { ComputeDType, TypedArray } from "../values/dtype";
import { generated } from "./generated";

/** A rule's update of the elements of one tensor. */
export function compileRule(program: Program, dtype: ComputeDType, stored?: StoredFormats): UpdateArrays {
  return updateOf(program, stored, (formats) => compileElements(program, dtype, formats));
}

function compileElements(program: Program, dtype: ComputeDType, stored?: readonly StoredDType[]): UpdateArrays {
  const arrays = withMirror(program, stored).buffers.map((name) => `${name}Array`);
  const compiled = generated([...arrays, "scalars", "start", "end"], writeRuleLoop(program, dtype, stored));
  if (compiled) return (buffers, scalars) => compiled(...buffers, scalars, 0, buffers[0]!.length);
  return interpreted(program, dtype, stored);
}

/** Computes one row of a map: `length` outputs from `start` on, input k read from `bases[k]` in steps of `steps[k]`. */
export type MapFunction = (
  inputs: readonly TypedArray[],
  bases: readonly number[],
  steps: readonly number[],
  out: TypedArray,
  start: number,
  length: number,
  scalars: readonly number[],
) => void;

export function compileMap(program: Program, dtype: ComputeDType): MapFunction {
  const slots = program.buffers.map((_, slot) => slot);
  const parameters = [
    ...slots.map((slot) => `array${slot}`),
    ...slots.map((slot) => `base${slot}`),
    ...slots.map((slot) => `step${slot}`),
  ];
  const compiled = generated([...parameters, "out", "start", "length", "scalars"], writeMapLoop(program, dtype));
  if (compiled) {
    return (inputs, bases, steps, out, start, length, scalars) =>
      compiled(...inputs, ...bases, ...steps, out, start, length, scalars);
  }
  return (inputs, bases, steps, out, start, length, scalars) => {
    const store = (_slot: number, i: number, value: number) => {
      out[start + i] = value;
    };
    interpret(program, dtype, inputs, scalars, store, 0, length, (slot, i) => bases[slot]! + i * steps[slot]!);
  };
}

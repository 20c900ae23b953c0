/** Elementwise ops with numpy broadcasting: an op is one map launch, and so is each operand's gradient. */

import type { Device } from "../../device/device";
import { tidy } from "../../device/scope";
import { check, OptError } from "../../errors/errors";
import { show } from "../../errors/show";
import { evaluateOp } from "../../rule/interpret";
import type { Program } from "../../rule/program";
import { overSamples } from "../../tensor/batching";
import { type Backward, isTaping, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import {
  byteSize,
  type ComputeDType,
  computeDType,
  type DType,
  isFloat,
  type MapDType,
  promote,
} from "../../values/dtype";
import { fromStored, toStored } from "../../values/half";
import { broadcastShapes, type Shape, sameShape } from "../../values/shape";
import { widenedDType } from "../autocast-operands";
import { cast, computeIn } from "../cast";
import { checkDevice } from "../check-device";
import { checkNumbers } from "../check-tensor";
import { comparedScalars, computeOn, integerScalars } from "../compute";
import { fill, launchMap } from "../map";
import { sumTo } from "../reduce/reduce";
import { ELEMENTWISE, type ElementwiseName } from "./elementwise-table";
import { type Derivative, type TracedOp, traceOp } from "./traced-op";

type Operands = readonly (Tensor | number)[];

/** Applies an elementwise op, which users call `where`. @throws OptError BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT, BAD_DTYPE, UNSUPPORTED */
export function elementwise(name: ElementwiseName, operands: Operands, where: string = name): Tensor {
  const samples = overSamples(elementwise, name, operands, where);
  if (samples) return samples;
  const tensors: Tensor[] = [];
  const scalars: number[] = [];
  let pattern = "";
  for (const operand of operands) {
    if (operand instanceof Tensor) {
      checkNumbers(where, operand);
      tensors.push(operand);
      pattern += "t";
    } else if (typeof operand === "number") {
      scalars.push(operand);
      pattern += "n";
    } else {
      const advice = "Wrap data with tensor(data).";
      throw new OptError("BAD_ARGUMENT", where, `operands must be tensors or numbers, got ${show(operand)}.`, advice);
    }
  }
  const [first] = tensors;
  check(
    first !== undefined,
    "BAD_ARGUMENT",
    where,
    () => "one operand must be a tensor, got only numbers.",
    "Wrap one with tensor(value).",
  );
  const device = checkDevice(where, tensors);
  const { dtype } = first;
  const isPlain = (dtype === "f32" || dtype === "f64") && tensors.every((tensor) => tensor.dtype === dtype);
  if (isPlain && ELEMENTWISE[name].result !== "bool") return run(name, pattern, tensors, scalars, dtype);
  const result = resultDType(name, tensors, scalars);
  if (result === "bool") {
    // What is compared with 16-bit floats is rounded to them first.
    const dtype = together(tensors);
    if (byteSize(dtype) === 2)
      return tidy(() =>
        elementwise(
          name,
          operands.map((operand) => asHalf(operand, dtype)),
          where,
        ),
      );
  }
  if (!isFloat(result)) return onIntegers(name, pattern, tensors, scalars, result, device);
  const compute = computeDType(result);
  return computeIn(compute, tensors, result, (...wide) => run(name, pattern, wide, scalars, compute));
}

/** In float32, what a 16-bit dtype holds of it. */
function asHalf(operand: Tensor | number, dtype: DType): Tensor | number {
  return typeof operand === "number" ? fromStored(dtype)(toStored(dtype)(operand)) : cast(cast(operand, dtype), "f32");
}

/** Results that are integers or booleans: i32 is computed modulo 2^32 and u8 modulo 2^8. */
function onIntegers(
  name: ElementwiseName,
  pattern: string,
  tensors: readonly Tensor[],
  given: readonly number[],
  result: DType,
  device: Device,
): Tensor {
  if (name === "pow") {
    const [number = 0] = given;
    const isExponent = pattern === "tn";
    check(
      !isExponent || number === (number & 0x7fffffff),
      "BAD_ARGUMENT",
      name,
      () => `integers take exponents from 0 to 2^31 - 1, got ${number}.`,
      'Use x.to("f32").',
    );
    const most = isExponent ? number : 2 ** 30;
    return computeIn("i32", tensors, result, (a, b = fill([], number, "i32", device)) =>
      pattern === "nt" ? power(b, a!, most) : power(a!, b, most),
    );
  }
  let compute = computeOn(device, result === "bool" ? together(tensors) : result);
  let scalars = given;
  if (result === "i32" || result === "u8") scalars = integerScalars(name, result, given);
  else if (compute === "i32") ({ compute, scalars } = comparedScalars(name, pattern, given));
  return computeIn(compute, tensors, result, (...wide) => {
    const output = run(name, pattern, wide, scalars, compute, result === "i32" && compute === "f64");
    return result === "u8" ? cast(output, "i32") : output; // of which u8 takes the low byte
  });
}

/** Integers by squaring, because floats would round what wraps: one bit of the exponents after the other, of which `most` is the largest. */
function power(base: Tensor, exponents: Tensor, most: number): Tensor {
  const op = (name: ElementwiseName, ...operands: (Tensor | number)[]) => elementwise(name, operands);
  // With negative exponents all but 1 and -1 become 0.
  const size = op("abs", base);
  const isOne = op("mul", op("less", 0, size), op("less", size, 2));
  let result = op("select", op("less", exponents, 0), isOne, 1);
  for (let bit = 1, square = base; bit <= most; bit *= 2) {
    const isSet = op("less", op("mul", exponents, 2 ** 31 / bit), 0); // shifted to the sign
    result = op("mul", result, op("select", isSet, square, 1));
    square = op("mul", square, square);
  }
  return result;
}

/** As in PyTorch: what has no dimensions only makes floats of integers, and integers of booleans. */
function together(tensors: readonly Tensor[]): DType {
  const { dtype } = tensors[0]!;
  if (tensors.every((t) => t.dtype === dtype)) return dtype;
  const of = (list: readonly Tensor[]) => list.map((t) => t.dtype).reduce(promote, "bool");
  const [all, own] = [of(tensors), of(tensors.filter((t) => t.shape.length > 0))];
  return isFloat(own) === isFloat(all) && own !== "bool" ? own : all;
}

/** Among themselves, booleans have these: their sum is "or", their product "and", as in PyTorch. */
const BOOLEAN = /^(add|mul|max|min|select)/;

function resultDType(name: ElementwiseName, tensors: readonly Tensor[], scalars: readonly number[]): DType {
  const { result, autocast } = ELEMENTWISE[name];
  if (result === "bool") return "bool";
  // The condition of select takes no part.
  const operands = name === "select" && tensors.length > 1 ? tensors.slice(1) : tensors;
  const dtype = together(operands);
  if (isFloat(dtype)) return autocast === undefined ? dtype : widenedDType(dtype);
  if (result !== "integer" || !scalars.every(Number.isInteger)) return "f32";
  return dtype === "bool" && (scalars.length > 0 || !BOOLEAN.test(name)) ? "i32" : dtype;
}

function run(
  name: ElementwiseName,
  pattern: string,
  tensors: readonly Tensor[],
  scalars: readonly number[],
  dtype: MapDType,
  wraps = false,
): Tensor {
  const traced = traceOp(name, pattern, wraps);
  const shape =
    tensors.length === 1
      ? tensors[0]!.shape
      : broadcastShapes(
          name,
          tensors.map((t) => t.shape),
        );
  const output = launchMap(traced.forward, dtype, tensors, scalars, shape);
  if (!tensors.some((t, i) => t.requiresGrad && traced.derivatives[i] !== null)) return output;
  const slots = slotsToSave(traced, tensors);
  const saved = slots.map((slot) => (slot === 1 ? output : tensors[slot - 2]!));
  const shapes = tensors.map((t) => t.shape);
  return record(name, output, tensors, saved, backwardOf(traced, slots, dtype, scalars, shape, shapes), traced.flat);
}

/** Which of [g, y, ...tensors] some derivative reads: only these are held until backward. */
function slotsToSave({ derivatives, saved }: TracedOp, tensors: readonly Tensor[]): readonly number[] {
  const needs = tensors.reduce((bits, tensor, i) => (tensor.requiresGrad ? bits | (1 << i) : bits), 0);
  let slots = saved.get(needs);
  if (slots === undefined) {
    const read = derivatives.flatMap((d, i) => (d !== null && needs & (1 << i) ? d.reads : []));
    slots = [...new Set(read)].filter((slot) => slot > 0);
    saved.set(needs, slots);
  }
  return slots;
}

/** Made apart from the tensors, which a closure beside them would keep alive. */
function backwardOf(
  { derivatives }: TracedOp,
  slots: readonly number[],
  dtype: MapDType,
  scalars: readonly number[],
  shape: Shape,
  shapes: readonly Shape[],
): Backward {
  return (g, held, needs) =>
    derivatives.map((launched, i) => {
      if (launched === null || !needs[i]) return null;
      const derivative = (isTaping() && launched.recorded) || launched;
      const inputs = derivative.reads.map((slot) => (slot === 0 ? g : held[slots.indexOf(slot)]!));
      return sumTo(differentiate(derivative, dtype, g, inputs, scalars, shape), shapes[i]!);
    });
}

function differentiate(
  { program, reads }: Derivative,
  dtype: MapDType,
  g: Tensor,
  inputs: readonly Tensor[],
  scalars: readonly number[],
  shape: Shape,
): Tensor {
  const [output] = program.outputs;
  const isIdentity = reads.length === 1 && reads[0] === 0 && program.nodes[output!.node]!.op === "buffer";
  if (isIdentity && sameShape(g.shape, shape)) return g;
  // A gradient that has one itself is computed op by op: each is recorded, and rounds as it does in the launch.
  if (isTaping()) {
    const value = evaluate(program, dtype as ComputeDType, inputs, scalars)[output!.node]!;
    return typeof value === "number" ? fill(shape, value, dtype, g.device) : value;
  }
  return launchMap(program, dtype, inputs, scalars, shape);
}

/** The value of each node of a program, by elementwise ops on tensors; what involves none stays a number. */
export function evaluate(
  program: Program,
  dtype: ComputeDType,
  buffers: readonly Tensor[],
  scalars: Operands,
): (Tensor | number)[] {
  const round = dtype === "f32" ? Math.fround : (x: number) => x;
  const { device } = buffers[0]!;
  const values: (Tensor | number)[] = [];
  for (const { op, args, value } of program.nodes) {
    if (op === "buffer") values.push(buffers[value]!);
    else if (op === "scalar" || op === "constant") {
      const number = op === "scalar" ? scalars[value]! : value;
      values.push(typeof number === "number" ? round(number) : number);
    } else {
      const operands = args.map((arg) => values[arg]!);
      const [a, b, c] = operands;
      if (operands.every((operand) => typeof operand === "number")) {
        values.push(evaluateOp(op, dtype, a as number, b as number, c as number));
      } else if (op === "select" && typeof a === "number") {
        values.push((a === 0 ? c : b)!); // and nothing of the other
      } else if (op === "select" && typeof b === "number" && typeof c === "number") {
        // Between two numbers, a condition would choose an integer.
        values.push(elementwise(op, [a!, fill([], b, dtype, device), c]));
      } else values.push(elementwise(op as ElementwiseName, operands));
    }
  }
  return values;
}

/** First-order linear recurrences along an axis: what running sums and products are, and their gradients of any order. */

import { inEachRun } from "../../device/host-code";
import { tidy } from "../../device/scope";
import { decode } from "../../tensor/read";
import { noGrad, record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { byteSize, type TypedArray } from "../../values/dtype";
import { elementwise } from "../elementwise/elementwise";
import { fill } from "../map";
import { concat, slice } from "../shape/shape";
import { scan } from "./scan";

interface Direction {
  readonly axis: number;
  /** From the end. */
  readonly reversed: boolean;
}

/** y[i] = y[i - 1] + b[i] along an axis of extent > 0. */
export function runningSum(b: Tensor, axis: number): Tensor {
  return sums(b, { axis, reversed: false });
}

/** y[i] = y[i - 1] a[i] along an axis of extent > 0. In order, so that no product leaves the range but those that are asked for. */
export function runningProduct(a: Tensor, axis: number): Tensor {
  const direction = { axis, reversed: false };
  const output = computed({ a }, direction);
  return record("runningProduct", output, [a], [a, output], (g, [a, y]) => {
    const before = shifted(y!, direction, 1, 1);
    return [elementwise("mul", [recurrence(shifted(a!, direction, -1, 0), g, turned(direction)), before])];
  });
}

const turned = ({ axis, reversed }: Direction): Direction => ({ axis, reversed: !reversed });

function sums(b: Tensor, direction: Direction): Tensor {
  return record("runningSum", computed({ b }, direction), [b], [], adjointOfSums(turned(direction)));
}

/** Made apart from the tensors, which a closure beside them would keep alive. */
const adjointOfSums = (direction: Direction) => (g: Tensor) => [sums(g, direction)];

/** y[i] = a[i] y[i - 1] + b[i], from y[-1] = 0. */
function recurrence(a: Tensor, b: Tensor, direction: Direction): Tensor {
  const output = computed({ a, b }, direction);
  return record("recurrence", output, [a, b], [a, output], (g, [a, y]) => {
    const ofB = recurrence(shifted(a!, direction, -1, 0), g, turned(direction));
    return [elementwise("mul", [ofB, shifted(y!, direction, 1, 0)]), ofB];
  });
}

/** x one place later along the direction (1) or one earlier (-1), and a number where nothing comes. */
function shifted(x: Tensor, { axis, reversed }: Direction, by: 1 | -1, number: 0 | 1): Tensor {
  const extent = x.shape[axis]!;
  const edge = fill(x.shape.with(axis, 1), number, x.dtype, x.device);
  const isLater = (by === 1) !== reversed;
  return concat(isLater ? [edge, slice(x, 0, extent - 1, axis)] : [slice(x, 1, extent, axis), edge], axis);
}

/** Without a: sums. Without b: products. */
interface Terms {
  readonly a?: Tensor;
  readonly b?: Tensor;
}

function computed(terms: Terms, direction: Direction): Tensor {
  const { backend } = (terms.a ?? terms.b)!.device;
  return noGrad(() => (backend.sharesMemory ? byHost(terms, direction) : tidy(() => byRounds(terms, direction))));
}

function byHost({ a, b }: Terms, direction: Direction): Tensor {
  const { shape, dtype, device } = (b ?? a)!;
  const output = Tensor.empty(shape, dtype, device);
  const given = [a, b].filter((x) => x !== undefined);
  inEachRun([output, ...given], (output, ...given) => {
    const [first, second] = given.map(numbersOf) as [TypedArray, TypedArray?];
    const combine = (dtype === "i32" ? WHOLE : dtype === "f32" ? ROUNDED : PLAIN)[second ? "both" : a ? "mul" : "add"];
    run(first, second ?? first, combine, shape, direction);
    const values = second ?? first;
    const to = output.memorySlice();
    device.backend.write(to.memory, to.byteOffset, new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  });
  return output;
}

/** A copy. */
function numbersOf(x: Tensor): TypedArray {
  const { memory, byteOffset } = x.memorySlice();
  const bytes = x.device.backend.readSync!(memory, byteOffset, x.size * byteSize(x.dtype));
  return decode(x, bytes).slice();
}

type Combine = (y: number, a: number, b: number) => number;

const PLAIN = {
  add: (y: number, b: number) => y + b,
  mul: (y: number, a: number) => y * a,
  both: (y: number, a: number, b: number) => y * a + b,
} satisfies Record<string, Combine>;

const ROUNDED = {
  add: (y: number, b: number) => Math.fround(y + b),
  mul: (y: number, a: number) => Math.fround(y * a),
  both: (y: number, a: number, b: number) => Math.fround(Math.fround(y * a) + b),
} satisfies Record<string, Combine>;

/** Modulo 2^32. */
const WHOLE = {
  add: (y: number, b: number) => (y + b) | 0,
  mul: (y: number, a: number) => Math.imul(y, a),
  both: (y: number, a: number, b: number) => (Math.imul(y, a) + b) | 0,
} satisfies Record<string, Combine>;

/** b becomes y. */
function run(
  a: TypedArray,
  b: TypedArray,
  combine: Combine,
  shape: readonly number[],
  { axis, reversed }: Direction,
): void {
  const extent = shape[axis]!;
  const inner = shape.slice(axis + 1).reduce((product, size) => product * size, 1);
  const step = reversed ? -inner : inner;
  for (let block = 0; block < b.length; block += extent * inner) {
    for (let i = 1; i < extent; i++) {
      const begin = block + (reversed ? extent - 1 - i : i) * inner;
      for (let at = begin; at < begin + inner; at++) b[at] = combine(b[at - step]!, a[at]!, b[at]!);
    }
  }
}

/** On devices with memory of their own: there, products of later elements may leave the range. */
function byRounds({ a, b }: Terms, { axis, reversed }: Direction): Tensor {
  const op = (name: "add" | "mul" | "fma", ...operands: Tensor[]) => elementwise(name, operands);
  if (a === undefined) return scan([b!], axis, ([x], [before]) => [op("add", x!, before!)], reversed)[0]!;
  if (b === undefined) return scan([a], axis, ([x], [before]) => [op("mul", x!, before!)], reversed)[0]!;
  const joined = ([a, b]: readonly Tensor[], [before, y]: readonly Tensor[]) => [
    op("mul", a!, before!),
    op("fma", a!, y!, b!),
  ];
  return scan([a, b], axis, joined, reversed)[1]!;
}

/** Derivatives of functions: products with Jacobians and Hessians, and these themselves. */
import { grad } from "../autograd";
import { tidy } from "../device/scope";
import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { checkBody, checkSynchronous } from "../host/synchronous";
import { cast, checkAnyTensor, elementwise, fill, reshape, slice, stack } from "../ops";
import { enableGrad } from "../tensor/tape";
import { Tensor } from "../tensor/tensor";
import { eachTensor } from "./samples";

/** One tensor, or a list of them. */
export type OneOrMore = Tensor | readonly Tensor[];

/** A function of some inputs, which it gets one by one. */
export type FunctionOf<Inputs extends OneOrMore, Result> = (
  ...inputs: Inputs extends readonly Tensor[] ? Inputs : [Tensor]
) => Result;

/** One for each tensor of a list, or for the only one. */
export type PerTensor<Given extends OneOrMore, Each> = Given extends readonly Tensor[]
  ? { -readonly [Index in keyof Given]: Each }
  : Each;

export interface DerivativeOptions {
  /** Keeps results on the tape: they can be differentiated by what f uses. Default: where an input requires a gradient. */
  readonly createGraph?: boolean;
}

/**
 * What f gives, and how it changes along tangents of its inputs: J v. As torch.func.jvp; found by two backwards.
 *
 * @param inputs a tensor, or a list of them: f(...inputs)
 * @param tangents of the inputs' shapes
 * @returns f's result, and its tangents
 * @throws OptError BAD_ARGUMENT; BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH unless tangents are as their inputs
 * @example
 * jvp((x) => x.square(), tensor([1, 2]), tensor([1, 1])); // [1, 4] and [2, 4]
 */
export function jvp<const Inputs extends OneOrMore, const Result extends OneOrMore>(
  f: FunctionOf<Inputs, Result>,
  inputs: Inputs,
  tangents: PerTensor<Inputs, Tensor>,
  options: DerivativeOptions = {},
): [Result, PerTensor<Result, Tensor>] {
  return differentiated("jvp", f, inputs, options, ({ result, leaves, createGraph }) => {
    const along = checkedAs("jvp", "tangents", tangents, leaves);
    return [result, forEach(result, (y) => alongTangents(y, leaves, along, createGraph))];
  });
}

/**
 * What f gives, and the gradients of its inputs from those of its result: v J. As torch.autograd.functional.vjp.
 *
 * @param gradients of the result's shapes
 * @returns f's result, and a gradient for each input
 * @throws OptError BAD_ARGUMENT; BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH unless gradients are as their results
 * @example
 * vjp((x) => x.square(), tensor([1, 2]), tensor([1, 1])); // [1, 4] and [2, 4]
 */
export function vjp<const Inputs extends OneOrMore, const Result extends OneOrMore>(
  f: FunctionOf<Inputs, Result>,
  inputs: Inputs,
  gradients: PerTensor<Result, Tensor>,
  options: DerivativeOptions = {},
): [Result, PerTensor<Inputs, Tensor>] {
  return differentiated("vjp", f, inputs, options, ({ result, leaves, createGraph }) => {
    const results = listOf(result);
    const given = checkedAs("vjp", "gradients", gradients, results);
    const each = results.map((y, i) => gradientsOf(y, leaves, createGraph, given[i]));
    return [
      result,
      like(
        inputs,
        leaves.map((_, i) => added(each.map((list) => list[i]!))),
      ),
    ];
  });
}

/**
 * The derivative of each element of f's result by each of the inputs: of y [...] and x [...] shape [...y.shape, ...x.shape], for lists of
 * results or inputs a list of them. A backward for each element. As torch.func.jacrev.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * jacobian((x) => x.square(), tensor([1, 2])); // [[2, 0], [0, 4]]
 */
export function jacobian<const Inputs extends OneOrMore, const Result extends OneOrMore>(
  f: FunctionOf<Inputs, Result>,
  x: Inputs,
  options: DerivativeOptions = {},
): PerTensor<Result, PerTensor<Inputs, Tensor>> {
  return differentiated("jacobian", f, x, options, ({ result, leaves, createGraph }) =>
    forEach(result, (y) => like(x, jacobiansOf(y, leaves, createGraph))),
  );
}

/**
 * The second derivatives of a function of one result: of x shape [...x.shape, ...x.shape], for a list of inputs a list of lists. As torch.func.hessian.
 *
 * @throws OptError BAD_ARGUMENT; BAD_SHAPE unless f gives one element
 * @example
 * hessian((x) => x.pow(3).sum(), tensor([1, 2])); // [[6, 0], [0, 12]]
 */
export function hessian<const Inputs extends OneOrMore>(
  f: FunctionOf<Inputs, Tensor>,
  x: Inputs,
  options: DerivativeOptions = {},
): PerTensor<Inputs, PerTensor<Inputs, Tensor>> {
  return differentiated("hessian", f, x, options, ({ result, leaves, createGraph }) => {
    const slopes = gradientsOf(checkedScalar("hessian", result), leaves, true);
    return like(
      x,
      slopes.map((slope) => like(x, jacobiansOf(slope, leaves, createGraph))),
    );
  });
}

/**
 * What f gives, and its Hessian times v, without the Hessian. As torch.autograd.functional.hvp.
 *
 * @param v of the inputs' shapes
 * @throws OptError BAD_ARGUMENT; BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH unless v is as the inputs, and f gives one element
 * @example
 * hvp((x) => x.pow(3).sum(), tensor([1, 2]), tensor([1, 1])); // 9 and [6, 12]
 */
export function hvp<const Inputs extends OneOrMore>(
  f: FunctionOf<Inputs, Tensor>,
  x: Inputs,
  v: PerTensor<Inputs, Tensor>,
  options: DerivativeOptions = {},
): [Tensor, PerTensor<Inputs, Tensor>] {
  return differentiated("hvp", f, x, options, ({ result, leaves, createGraph }) => {
    const along = checkedAs("hvp", "v", v, leaves);
    const slopes = gradientsOf(checkedScalar("hvp", result), leaves, true);
    const each = slopes.map((slope, i) => gradientsOf(slope, leaves, createGraph, along[i]));
    return [
      result,
      like(
        x,
        leaves.map((_, i) => added(each.map((list) => list[i]!))),
      ),
    ];
  });
}

interface Computed {
  readonly result: OneOrMore;
  readonly leaves: readonly Tensor[];
  readonly createGraph: boolean;
}

/** Runs f on leaves, and gives what `derive` makes of its result: off the tape, unless it shall stay there. */
function differentiated<Derived>(
  where: string,
  f: unknown,
  inputs: OneOrMore,
  options: DerivativeOptions,
  derive: (computed: Computed) => unknown,
): Derived {
  checkBody(where, f);
  checkOptions(where, options, { createGraph: "boolean" });
  const given = checkedList(where, "inputs", inputs);
  const { createGraph = given.some((x) => x.requiresGrad) } = options;
  return tidy(() =>
    enableGrad(() => {
      const leaves = given.map(leafOf);
      const result: unknown = (f as (...inputs: readonly Tensor[]) => unknown)(...leaves);
      checkSynchronous(where, result);
      checkedList(where, "results", result);
      const derived = derive({ result: result as OneOrMore, leaves, createGraph });
      return eachTensor(derived, (x) => (createGraph ? reshape(x, x.shape) : x.detach())) as Derived;
    }),
  );
}

/** On the tape where the input is, so that derivatives can be differentiated by it. */
function leafOf(x: Tensor): Tensor {
  if (x.requiresGrad) return reshape(x, x.shape);
  const leaf = x.detach();
  leaf.requiresGrad = true;
  return leaf;
}

const listOf = (given: OneOrMore): readonly Tensor[] => (given instanceof Tensor ? [given] : given);
const like = (given: OneOrMore, list: readonly unknown[]): unknown => (given instanceof Tensor ? list[0] : list);
const forEach = (given: OneOrMore, visit: (x: Tensor) => unknown) => like(given, listOf(given).map(visit));
const zerosOf = ({ shape, dtype, device }: Tensor) => fill(shape, 0, dtype, device);
const added = (list: readonly Tensor[]) => list.reduce((a, b) => elementwise("add", [a, b]));

function checkedList(where: string, name: string, given: unknown): readonly Tensor[] {
  if (!Array.isArray(given)) checkAnyTensor(where, given, name);
  const list = listOf(given as OneOrMore);
  checkValue(list.length > 0, where, name, "a tensor, or a list of some", given);
  for (const [i, x] of list.entries()) checkAnyTensor(where, x, `${name}: tensor ${i}`);
  return list;
}

function checkedAs(where: string, name: string, given: unknown, wanted: readonly Tensor[]): readonly Tensor[] {
  const list = checkedList(where, name, given);
  checkValue(list.length === wanted.length, where, name, `one for each of ${wanted.length} tensors`, list.length);
  for (const [i, x] of wanted.entries()) x.checkGradient(where, list[i]!);
  return list;
}

function checkedScalar(where: string, result: OneOrMore): Tensor {
  const y = result as Tensor;
  const isOne = y instanceof Tensor && y.size === 1;
  check(isOne, "BAD_SHAPE", where, () => "f must give one element, got more.", "Reduce with sum() or mean().");
  return y;
}

/** Zeros for what y does not depend on. */
function gradientsOf(y: Tensor, leaves: readonly Tensor[], createGraph: boolean, gradient?: Tensor): Tensor[] {
  if (!y.requiresGrad) return leaves.map(zerosOf);
  const options = { createGraph, retainGraph: true, allowUnused: true, ...(gradient && { gradient }) } as const;
  return grad(y, leaves, options).map((g: Tensor | null, i) => g ?? zerosOf(leaves[i]!));
}

/** Gradients are linear in that of y: their change with it is the transpose of the transpose. */
function alongTangents(
  y: Tensor,
  leaves: readonly Tensor[],
  tangents: readonly Tensor[],
  createGraph: boolean,
): Tensor {
  // Zeros that are one for each sample, where y is.
  const seed = cast(elementwise("less", [y.detach(), y.detach()]), y.dtype);
  seed.requiresGrad = true;
  const slopes = gradientsOf(y, leaves, true, seed);
  return added(slopes.map((slope, i) => gradientsOf(slope, [seed], createGraph, tangents[i])[0]!));
}

function jacobiansOf(y: Tensor, leaves: readonly Tensor[], createGraph: boolean): Tensor[] {
  const flat = reshape(y, [y.size]);
  const rows = Array.from({ length: y.size }, (_, i) => gradientsOf(slice(flat, i, i + 1), leaves, createGraph));
  return leaves.map((leaf, i) => {
    const shape = [...y.shape, ...leaf.shape];
    return rows.length === 0
      ? fill(shape, 0, leaf.dtype, leaf.device)
      : reshape(stack(rows.map((row) => row[i]!)), shape);
  });
}

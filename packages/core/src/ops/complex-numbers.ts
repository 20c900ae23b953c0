/** Arithmetic of complex numbers, made of that of their parts. */
import { tidy } from "../device/scope";
import { check } from "../errors/errors";
import type { Tensor } from "../tensor/tensor";
import { checkAnyTensor, checkTensor } from "./check-tensor";
import { viewAsComplex, viewAsReal } from "./complex";
import { einsum } from "./einsum";
import { atan2 } from "./elementwise/circular";
import { elementwise } from "./elementwise/elementwise";
import { le } from "./elementwise/logic";
import { fill } from "./map";
import { norm } from "./reduce/norm";
import { stack } from "./shape/join";
import { reshape, slice } from "./shape/shape";

/** The parts of complex numbers; the imaginary part of real ones is null. */
type Parts = readonly [real: Tensor, imaginary: Tensor | null];

function partsOf(where: string, x: Tensor): Parts {
  checkAnyTensor(where, x);
  check(
    x.dtype === "c64" || x.dtype === "f32",
    "BAD_DTYPE",
    where,
    () => `needs c64 or f32, got ${x.dtype}.`,
    'Use x.to("f32").',
  );
  return x.dtype === "f32" ? [x, null] : [part(x, 0), part(x, 1)];
}

const part = (x: Tensor, i: number) => reshape(slice(viewAsReal(x), i, i + 1, -1), x.shape);
const joined = (real: Tensor, imaginary: Tensor) => viewAsComplex(stack([real, imaginary], -1));
const product = (a: Tensor, b: Tensor) => elementwise("mul", [a, b]);

function checkComplex(where: string, x: unknown): asserts x is Tensor {
  checkAnyTensor(where, x);
  check(x.dtype === "c64", "BAD_DTYPE", where, () => `needs complex numbers, got ${x.dtype}.`, "Leave it out.");
}

function checkPart(where: string, x: unknown): asserts x is Tensor {
  checkTensor(where, x);
  check(x.dtype === "f32", "BAD_DTYPE", where, () => `parts must be f32, got ${x.dtype}.`, 'Use x.to("f32").');
}

/**
 * Complex numbers of two tensors of one shape: re + im i, as c64. As torch.complex.
 *
 * @throws OptError BAD_DTYPE unless both are f32; BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * complex(tensor([3, 0]), tensor([4, 1])); // 3 + 4i and i
 */
export function complex(re: Tensor, im: Tensor): Tensor {
  for (const x of [re, im]) checkPart("complex", x);
  return tidy(() => joined(re, im));
}

/**
 * The real parts of complex numbers, as f32: a copy. `viewAsReal` is a view.
 *
 * @throws OptError BAD_DTYPE, BAD_ARGUMENT
 * @example
 * real(viewAsComplex(tensor([[3, 4]]))); // [3]
 */
export function real(x: Tensor): Tensor {
  checkComplex("real", x);
  return tidy(() => part(x, 0));
}

/**
 * The imaginary parts of complex numbers, as f32: a copy. `viewAsReal` is a view.
 *
 * @throws OptError BAD_DTYPE, BAD_ARGUMENT
 * @example
 * imag(viewAsComplex(tensor([[3, 4]]))); // [4]
 */
export function imag(x: Tensor): Tensor {
  checkComplex("imag", x);
  return tidy(() => part(x, 1));
}

/**
 * The conjugates of complex numbers: re - im i.
 *
 * @throws OptError BAD_DTYPE, BAD_ARGUMENT
 * @example
 * conj(viewAsComplex(tensor([[3, 4]]))); // 3 - 4i
 */
export function conj(x: Tensor): Tensor {
  checkComplex("conj", x);
  return tidy(() => joined(part(x, 0), elementwise("neg", [part(x, 1)])));
}

/**
 * The angles of complex numbers in radians, from -pi to pi: that of 0 is 0, without a gradient. As torch.angle.
 *
 * @throws OptError BAD_DTYPE, BAD_ARGUMENT
 * @example
 * angle(viewAsComplex(tensor([[0, 2]]))); // [1.5708]
 */
export function angle(x: Tensor): Tensor {
  checkComplex("angle", x);
  return tidy(() => {
    const [re, im] = [part(x, 0), part(x, 1)];
    const isNothing = le(norm(viewAsReal(x), 2, -1), 0);
    const or = (value: number, of: Tensor) => elementwise("select", [isNothing, value, of]);
    return atan2(or(0, im), or(1, re));
  });
}

/**
 * Complex numbers of a length and an angle: abs cos(angle) + abs sin(angle) i. As torch.polar, whose gradient differs where abs <= 0.
 *
 * @throws OptError BAD_DTYPE unless both are f32; BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * polar(tensor([2]), tensor([Math.PI / 2])); // 2i
 */
export function polar(abs: Tensor, angle: Tensor): Tensor {
  for (const x of [abs, angle]) checkPart("polar", x);
  return tidy(() => joined(product(abs, elementwise("cos", [angle])), product(abs, elementwise("sin", [angle]))));
}

/**
 * The lengths of complex numbers, sqrt(re^2 + im^2), as f32. The gradient of 0 is 0. As torch.abs.
 *
 * @throws OptError BAD_DTYPE, BAD_ARGUMENT
 * @example
 * complexAbs(viewAsComplex(tensor([[3, 4]]))); // [5]
 */
export function complexAbs(x: Tensor): Tensor {
  checkComplex("complexAbs", x);
  return norm(viewAsReal(x), 2, -1);
}

/**
 * Products of complex numbers, of which one may be f32: shapes broadcast. As torch.mul.
 *
 * @throws OptError BAD_DTYPE, BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH
 * @example
 * const i = complex(tensor(0), tensor(1));
 * complexMul(i, i); // -1
 */
export function complexMul(a: Tensor, b: Tensor): Tensor {
  return tidy(() => multilinear("complexMul", [a, b], ([x, y]) => product(x!, y!)));
}

/**
 * `einsum` of complex numbers, of which some may be f32. As torch.einsum: "ij,jk->ik" is the matrix product. Nothing is conjugated.
 *
 * @throws OptError BAD_DTYPE, BAD_ARGUMENT, BAD_SHAPE, DEVICE_MISMATCH
 * @example
 * complexEinsum("i,i->", fft(tensor([1, 2])), conj(fft(tensor([1, 2])))); // 10
 */
export function complexEinsum(equation: string, ...operands: readonly Tensor[]): Tensor {
  return tidy(() => multilinear("complexEinsum", operands, (parts) => einsum(equation, ...parts)));
}

/** By all choices of parts: those with an odd number of imaginary ones are the imaginary part, and i^2 is -1. */
function multilinear(where: string, operands: readonly Tensor[], op: (parts: readonly Tensor[]) => Tensor): Tensor {
  const choices = operands
    .map((operand) => partsOf(where, operand))
    .reduce<{ parts: Tensor[]; power: number }[]>(
      (before, [re, im]) =>
        before.flatMap(({ parts, power }) => [
          { parts: [...parts, re], power },
          ...(im === null ? [] : [{ parts: [...parts, im], power: power + 1 }]),
        ]),
      [{ parts: [], power: 0 }],
    );
  const sums: (Tensor | undefined)[] = [undefined, undefined];
  for (const { parts, power } of choices) {
    const term = op(parts);
    const sum = sums[power % 2];
    if (sum === undefined) sums[power % 2] = term;
    else sums[power % 2] = elementwise(power % 4 < 2 ? "add" : "sub", [sum, term]);
  }
  const [re, im] = sums as [Tensor, Tensor | undefined];
  return joined(re, im ?? fill(re.shape, 0, "f32", re.device));
}

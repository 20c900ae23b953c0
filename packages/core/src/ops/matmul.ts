/** Matrix products. */

import { tidy } from "../device/scope";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { noGrad, record } from "../tensor/tape";
import { Tensor } from "../tensor/tensor";
import { type ComputeDType, computeDType, promote } from "../values/dtype";
import { broadcastShapes, type Shape, sameShape, showShape, sizeOf } from "../values/shape";
import { inLow } from "./autocast";
import { cast, computeIn } from "./cast";
import { checkDevice } from "./check-device";
import { checkTensor } from "./check-tensor";
import { LOW, WRAP } from "./compute";
import { elementwise } from "./elementwise/elementwise";
import { inWords } from "./map";
import { stretched, sumTo } from "./reduce/reduce";
import { reshape } from "./shape/shape";

interface Transposes {
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
}

const TRANSPOSES = { transposeA: "boolean", transposeB: "boolean" } as const;

/** torch.matmul: vectors are rows on the left and columns on the right, leading axes broadcast. Integers are multiplied and summed modulo 2^32, u8 modulo 2^8; that takes float64. @throws OptError BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT */
export function matmul(a: Tensor, b: Tensor, options: Transposes = {}): Tensor {
  checkTensor("matmul", a, "the left operand");
  checkTensor("matmul", b, "the right operand");
  checkOptions("matmul", options, TRANSPOSES);
  const { transposeA = false, transposeB = false } = options;
  checkDevice("matmul", [a, b]);
  const low = inLow([a, b], (x, y) => matmul(x!, y!, options));
  if (low !== null) return low;
  const dtype = promote(a.dtype, b.dtype);
  if (dtype === "i32" || dtype === "u8")
    return computeIn("f64", [a, b], dtype, (x, y) => onIntegers(x!, y!, transposeA, transposeB));
  const compute = computeDType(dtype);
  if (a.dtype !== compute || b.dtype !== compute)
    return computeIn(compute, [a, b], dtype, (x, y) => product(x!, y!, transposeA, transposeB));
  return product(a, b, transposeA, transposeB);
}

/** Of numbers of 16 bits, and of those times 2^16, float64 holds every sum; products of two upper halves are 0 modulo 2^32. */
function onIntegers(a: Tensor, b: Tensor, transposeA: boolean, transposeB: boolean): Tensor {
  const [lowA, lowB] = [inWords(LOW, a), inWords(LOW, b)];
  const of = (x: Tensor, y: Tensor) => cast(inWords(WRAP, product(x, y, transposeA, transposeB)), "i32");
  const add = (x: Tensor, y: Tensor) => elementwise("add", [x, y]);
  const upper = (x: Tensor, low: Tensor) => elementwise("sub", [x, low]);
  return add(add(of(lowA, lowB), of(lowA, upper(b, lowB))), of(upper(a, lowA), lowB));
}

/** Both in the dtype in which products are computed. */
function product(a: Tensor, b: Tensor, transposeA: boolean, transposeB: boolean): Tensor {
  check(
    a.shape.length > 0 && b.shape.length > 0,
    "BAD_SHAPE",
    "matmul",
    () => `operands need at least one axis, got ${showShape(a.shape)} and ${showShape(b.shape)}.`,
    "Use mul for scalars.",
  );
  if (a.shape.length === 1) {
    const row = transposeA ? [a.size, 1] : [1, a.size];
    return tidy(() => squeeze(product(reshape(a, row), b, transposeA, transposeB), -2));
  }
  if (b.shape.length === 1) {
    const column = transposeB ? [1, b.size] : [b.size, 1];
    return tidy(() => squeeze(product(a, reshape(b, column), transposeA, transposeB), -1));
  }

  const [height, k] = matrix(a.shape, transposeA);
  const [kB, n] = matrix(b.shape, transposeB);
  const shown = (x: Tensor, transposed: boolean) => `${transposed ? "transposed " : ""}${showShape(x.shape)}`;
  check(
    k === kB,
    "BAD_SHAPE",
    "matmul",
    () => `inner extents must be equal, got ${k} and ${kB} in ${shown(a, transposeA)} and ${shown(b, transposeB)}.`,
    "Transpose or reshape one.",
  );
  const batchA = a.shape.slice(0, -2);
  const batchB = b.shape.slice(0, -2);
  const batch = broadcastShapes("matmul", [batchA, batchB]);
  // One matrix on the right: all rows of A in one product.
  const isTall = batchB.length === 0 && !transposeA;
  const count = isTall ? 1 : sizeOf(batch);
  const m = isTall ? sizeOf(batchA) * height : height;
  const left = isTall ? { tensor: a, isShared: true } : batched(a, batchA, batch);
  const right = isTall ? { tensor: b, isShared: true } : batched(b, batchB, batch);
  const output = Tensor.empty([...batch, height, n], a.dtype, a.device);
  a.device.launch({
    kind: "matmul",
    kernel: a.device.kernel({ kind: "matmul", transposeA, transposeB, dtype: a.dtype as ComputeDType }),
    a: left.tensor.memorySlice(),
    b: right.tensor.memorySlice(),
    output: output.memorySlice(),
    batch: count,
    m,
    n,
    k,
    strideA: left.isShared ? 0 : m * k,
    strideB: right.isShared ? 0 : k * n,
  });
  if (left.tensor !== a) left.tensor.dispose();
  if (right.tensor !== b) right.tensor.dispose();
  const rows = (x: Tensor) => (isTall && batchA.length > 0 ? reshape(x, [m, x.shape.at(-1)!]) : x);
  const { shape: shapeA } = a;
  const { shape: shapeB } = b;
  // Each gradient needs the other operand only.
  const saved = [...(b.requiresGrad ? [a] : []), ...(a.requiresGrad ? [b] : [])];
  return record("matmul", output, [a, b], saved, (g, held, [needsA, needsB]) => {
    const [A, B] = [held[0], held.at(-1)];
    return [
      needsA ? sumTo(transposeA ? product(B!, g, transposeB, true) : product(g, B!, false, !transposeB), shapeA) : null,
      needsB
        ? sumTo(
            transposeB ? product(rows(g), rows(A!), true, transposeA) : product(rows(A!), rows(g), !transposeA, false),
            shapeB,
          )
        : null,
    ];
  });
}

function squeeze(x: Tensor, axis: -1 | -2): Tensor {
  return reshape(x, x.shape.toSpliced(axis, 1));
}

function matrix(shape: Shape, transposed: boolean): [number, number] {
  const [rows, columns] = [shape.at(-2)!, shape.at(-1)!];
  return transposed ? [columns, rows] : [rows, columns];
}

/** The operand with one matrix per batch element, or a single one that all share. */
function batched(x: Tensor, own: Shape, batch: Shape): { tensor: Tensor; isShared: boolean } {
  if (sizeOf(own) === 1) return { tensor: x, isShared: true };
  if (sameShape(own, batch)) return { tensor: x, isShared: false };
  return { tensor: noGrad(() => stretched(x, [...batch, ...x.shape.slice(-2)])), isShared: false };
}

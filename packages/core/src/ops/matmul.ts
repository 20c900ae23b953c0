/** Matrix products. */

import { tidy } from "../device/scope";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { overSamples } from "../tensor/batching";
import { type Backward, noGrad, record } from "../tensor/tape";
import { Tensor } from "../tensor/tensor";
import { type MapDType, promote } from "../values/dtype";
import { broadcastShapes, type Shape, sameShape, showShape, sizeOf } from "../values/shape";
import { inLow } from "./autocast-operands";
import { cast, computeIn } from "./cast";
import { checkDevice } from "./check-device";
import { checkTensor } from "./check-tensor";
import { computeOn, LOW, WRAP } from "./compute";
import { definePrimitive } from "./define-function";
import { elementwise } from "./elementwise/elementwise";
import { inWords } from "./map";
import { stretched, sumTo } from "./reduce/reduce";
import { reshape } from "./shape/shape";

interface Transposes {
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
}

const TRANSPOSES = { transposeA: "boolean", transposeB: "boolean" } as const;

/** The matrix product, with PyTorch's broadcasting of leading axes: vectors are rows on the left and columns on the right. Integers are multiplied and summed modulo 2^32, u8 modulo 2^8. @throws OptError BAD_SHAPE, DEVICE_MISMATCH, BAD_ARGUMENT */
export const matmul = /* @__PURE__ */ definePrimitive(
  { torch: "a @ b # torch.matmul(a, b)", tensors: ["...mk", "kn"] },
  (a: Tensor, b: Tensor, options: Transposes = {}): Tensor => {
    const samples = overSamples(matmul, a, b, options);
    if (samples) return samples;
    checkTensor("matmul", a, "the left operand");
    checkTensor("matmul", b, "the right operand");
    checkOptions("matmul", options, TRANSPOSES);
    const { transposeA = false, transposeB = false } = options;
    const device = checkDevice("matmul", [a, b]);
    const low = inLow([a, b], (x, y) => matmul(x!, y!, options));
    if (low !== null) return low;
    const dtype = promote(a.dtype, b.dtype);
    const compute = computeOn(device, dtype);
    if (compute !== "i32" && (dtype === "i32" || dtype === "u8"))
      return computeIn("f64", [a, b], dtype, (x, y) => onIntegers(x!, y!, transposeA, transposeB));
    if (a.dtype !== compute || b.dtype !== compute)
      return computeIn(compute, [a, b], dtype, (x, y) => product(x!, y!, transposeA, transposeB));
    return product(a, b, transposeA, transposeB);
  },
);

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

  const [height, k, n] = extentsOf(a.shape, b.shape, transposeA, transposeB);
  const batchA = a.shape.slice(0, -2);
  // One matrix on the right: all rows of A in one product.
  const isTall = b.shape.length === 2 && !transposeA;
  const batchB = isTall ? [] : b.shape.slice(0, -2);
  const batch = isTall ? batchA : broadcastShapes("matmul", [batchA, batchB]);
  const count = isTall ? 1 : sizeOf(batch);
  const m = isTall ? sizeOf(batchA) * height : height;
  const left = isTall ? a : batched(a, batchA, batch);
  const right = isTall ? b : batched(b, batchB, batch);
  const output = Tensor.empty(batch.concat(height, n), a.dtype, a.device);
  a.device.launch({
    kind: "matmul",
    kernel: a.device.kernel({ kind: "matmul", transposeA, transposeB, dtype: a.dtype as MapDType }),
    a: left.memorySlice(),
    b: right.memorySlice(),
    output: output.memorySlice(),
    batch: count,
    m,
    n,
    k,
    strideA: left.size === m * k ? 0 : m * k,
    strideB: right.size === k * n ? 0 : k * n,
  });
  if (left !== a) left.dispose();
  if (right !== b) right.dispose();
  // Each gradient needs the other operand only.
  const saved: Tensor[] = [];
  if (b.requiresGrad) saved.push(a);
  if (a.requiresGrad) saved.push(b);
  const rows = isTall && batchA.length > 0 ? m : null;
  return record("matmul", output, [a, b], saved, backwardOf(transposeA, transposeB, rows, a.shape, b.shape));
}

/** Of the left operand's gradient and the right one's. `rows`: those of a left operand whose batches are multiplied as one. */
function backwardOf(
  transposeA: boolean,
  transposeB: boolean,
  rows: number | null,
  shapeA: Shape,
  shapeB: Shape,
): Backward {
  const flat = (x: Tensor) => (rows === null ? x : reshape(x, [rows, x.shape.at(-1)!]));
  return (g, held, [needsA, needsB]) => {
    const [A, B] = [held[0], held.at(-1)];
    return [
      needsA ? sumTo(transposeA ? product(B!, g, transposeB, true) : product(g, B!, false, !transposeB), shapeA) : null,
      needsB
        ? sumTo(
            transposeB ? product(flat(g), flat(A!), true, transposeA) : product(flat(A!), flat(g), !transposeA, false),
            shapeB,
          )
        : null,
    ];
  };
}

function squeeze(x: Tensor, axis: -1 | -2): Tensor {
  return reshape(x, x.shape.toSpliced(axis, 1));
}

/** Rows of A, its columns, and those of B. @throws OptError BAD_SHAPE */
function extentsOf(
  a: Shape,
  b: Shape,
  transposeA: boolean,
  transposeB: boolean,
): [height: number, k: number, n: number] {
  const [endA, endB] = [a.length - 1, b.length - 1];
  const k = a[transposeA ? endA - 1 : endA]!;
  const kB = b[transposeB ? endB : endB - 1]!;
  const shown = (shape: Shape, transposed: boolean) => `${transposed ? "transposed " : ""}${showShape(shape)}`;
  check(
    k === kB,
    "BAD_SHAPE",
    "matmul",
    () => `inner extents must be equal, got ${k} and ${kB} in ${shown(a, transposeA)} and ${shown(b, transposeB)}.`,
    "Transpose or reshape one.",
  );
  return [a[transposeA ? endA : endA - 1]!, k, b[transposeB ? endB - 1 : endB]!];
}

/** The operand with one matrix per batch element, or a single one that all share. */
function batched(x: Tensor, own: Shape, batch: Shape): Tensor {
  if (sizeOf(own) === 1 || sameShape(own, batch)) return x;
  return noGrad(() => stretched(x, [...batch, ...x.shape.slice(-2)]));
}

/** Matrix products. */

import { tidy } from "../device/scope";
import { check } from "../errors/errors";
import { noGrad, record } from "../tensor/tape";
import { Tensor } from "../tensor/tensor";
import { computeDType, promote } from "../values/dtype";
import { broadcastShapes, type Shape, sameShape, showShape, sizeOf } from "../values/shape";
import { computeIn } from "./cast";
import { checkDevice } from "./check-device";
import { checkTensor } from "./check-tensor";
import { stretched, sumTo } from "./reduce/reduce";
import { reshape } from "./shape/shape";

interface Transposes {
  readonly transposeA?: boolean;
  readonly transposeB?: boolean;
}

/** torch.matmul: vectors are rows on the left and columns on the right, leading axes broadcast. @throws OptError BAD_SHAPE, DEVICE_MISMATCH */
export function matmul(a: Tensor, b: Tensor, { transposeA = false, transposeB = false }: Transposes = {}): Tensor {
  checkTensor("matmul", a, "the left operand");
  checkTensor("matmul", b, "the right operand");
  checkDevice("matmul", [a, b]);
  const dtype = promote(a.dtype, b.dtype);
  const compute = computeDType(dtype);
  if (a.dtype !== compute || b.dtype !== compute)
    return computeIn(compute, [a, b], dtype, (x, y) => matmul(x!, y!, { transposeA, transposeB }));
  check(
    a.shape.length > 0 && b.shape.length > 0,
    "BAD_SHAPE",
    "matmul",
    () => `operands need at least one axis, got ${showShape(a.shape)} and ${showShape(b.shape)}.`,
    "Use mul for scalars.",
  );
  if (a.shape.length === 1) {
    const row = transposeA ? [a.size, 1] : [1, a.size];
    return tidy(() => squeeze(matmul(reshape(a, row), b, { transposeA, transposeB }), -2));
  }
  if (b.shape.length === 1) {
    const column = transposeB ? [1, b.size] : [b.size, 1];
    return tidy(() => squeeze(matmul(a, reshape(b, column), { transposeA, transposeB }), -1));
  }

  const [m, k] = matrix(a.shape, transposeA);
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
  if (batchB.length === 0 && batchA.length > 0 && !transposeA) {
    // One matrix on the right: all rows of A in one product.
    return tidy(() => {
      const rows = matmul(reshape(a, [sizeOf(batchA) * m, k]), b, { transposeB });
      return reshape(rows, [...batchA, m, n]);
    });
  }
  const batch = broadcastShapes("matmul", [batchA, batchB]);
  const count = sizeOf(batch);
  const left = batched(a, batchA, batch);
  const right = batched(b, batchB, batch);
  const output = Tensor.empty([...batch, m, n], compute, a.device);
  a.device.launch({
    kind: "matmul",
    kernel: a.device.kernel({ kind: "matmul", transposeA, transposeB, dtype: compute }),
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
  const { shape: shapeA } = a;
  const { shape: shapeB } = b;
  // Each gradient needs the other operand only.
  const saved = [...(b.requiresGrad ? [a] : []), ...(a.requiresGrad ? [b] : [])];
  return record("matmul", output, [a, b], saved, (g, held, [needsA, needsB]) => {
    const [A, B] = [held[0], held.at(-1)];
    return [
      needsA
        ? sumTo(
            transposeA
              ? matmul(B!, g, { transposeA: transposeB, transposeB: true })
              : matmul(g, B!, { transposeB: !transposeB }),
            shapeA,
          )
        : null,
      needsB
        ? sumTo(
            transposeB
              ? matmul(g, A!, { transposeA: true, transposeB: transposeA })
              : matmul(A!, g, { transposeA: !transposeA }),
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

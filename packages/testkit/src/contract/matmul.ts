/** Matrix products: transposes, batches, operands shared by a batch, sizes around every block. */
import { describe, expect, it } from "vitest";
import { matmul } from "../reference/matmul";
import { type ContractContext, LARGE } from "./context";
import "../numbers/matcher";

/** batch, m, n, k. Batches of more than a million multiplications are shared out by threads: by items or, where those are few, within each. */
const SHAPES: readonly (readonly [number, number, number, number])[] = [
  [1, 1, 1, 1],
  [1, 3, 5, 17],
  [2, 17, 3, 5],
  [1, 33, 65, 31],
  [1, 64, 64, 64],
  [1, 97, 130, 257],
  [1, 29, 71, 1100],
  [1, 1030, 18, 512],
  [3, 8, 8, 8],
  [1, 1027, 1, 9],
  [1, 1, 1027, 9],
  [1, 1, 1, 1027],
  [2, 90, 94, 98],
  [2, 131, 150, 21],
  [7, 61, 67, 70],
  [19, 33, 35, 130],
  [37, 1, 260, 90],
  [LARGE, 1, 1, 2],
  [1, LARGE, 2, 3],
  [1, 2, LARGE, 3],
  [1, 0, 3, 2],
  [1, 3, 0, 2],
  [0, 2, 2, 2],
  [2, 3, 4, 0],
];

const TRANSPOSES = [
  { transposeA: false, transposeB: false },
  { transposeA: true, transposeB: false },
  { transposeA: false, transposeB: true },
  { transposeA: true, transposeB: true },
] as const;

export function matmulContract(context: ContractContext): void {
  const { dtype } = context;

  async function checkProduct(
    [batch, m, n, k]: readonly [number, number, number, number],
    transposes: (typeof TRANSPOSES)[number],
    { sharedA = false, sharedB = false, salted = false } = {},
  ) {
    const a = context.seeded((sharedA ? 1 : batch) * m * k, 1);
    const b = context.seeded((sharedB ? 1 : batch) * k * n, 2);
    if (salted) {
      a.fill(0, 0, k); // 0 * NaN is NaN: no zero may be skipped
      b[0] = Number.NaN;
      b[b.length - 1] = Number.POSITIVE_INFINITY;
    }
    const strides = { strideA: sharedA ? 0 : m * k, strideB: sharedB ? 0 : k * n };
    const { product, magnitude } = matmul(a, b, { batch, m, n, k, ...strides, ...transposes });
    await context.check(
      { kind: "matmul", ...transposes, dtype },
      { input: { a, b }, output: { output: context.empty(batch * m * n) } },
      (slices) => ({ ...slices, batch, m, n, k, ...strides }),
      ({ output }, label) => expect(output, label).toAgreeWith(product, context.sumTolerance(magnitude)),
    );
  }

  describe.each(TRANSPOSES)("matmul, transposeA $transposeA, transposeB $transposeB", (transposes) => {
    it.each(SHAPES)("%d x [%d, %d] over %d", (...shape) => checkProduct(shape, transposes));
    it("of a batch that shares A", () => checkProduct([5, 7, 9, 11], transposes, { sharedA: true }));
    it("of a batch that shares B", () => checkProduct([5, 7, 9, 11], transposes, { sharedB: true }));
    context.itWithSpecials("lets NaN and infinity through", () =>
      checkProduct([2, 19, 21, 23], transposes, { salted: true }),
    );
  });
}

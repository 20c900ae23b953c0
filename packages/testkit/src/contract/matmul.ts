/** Matrix products: transposes, batches, operands shared by a batch, sizes around every block, sums that are rounded once. */
import type { ComputeDType } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { matmul } from "../reference/matmul";
import { type ContractContext, LARGE } from "./context";
import "../numbers/matcher";
import { Random } from "../numbers/random";

type Shape = readonly [batch: number, m: number, n: number, k: number];

/** batch, m, n, k. Batches of more than a million multiplications are shared out by threads: by items or, where those are few, within each. */
const SHAPES: readonly Shape[] = [
  [1, 1, 1, 1],
  [1, 3, 5, 17],
  [2, 17, 3, 5],
  [1, 33, 65, 31],
  [1, 64, 64, 64],
  [1, 49, 130, 257],
  [1, 13, 71, 1100],
  [1, 1030, 18, 90],
  [1, 5, 67, 513],
  [2, 1, 69, 1025],
  [2, 70, 1, 1537],
  [3, 8, 8, 8],
  [1, 1027, 1, 9],
  [1, 1, 1027, 9],
  [1, 1, 1, 1027],
  [2, 90, 94, 98],
  [2, 131, 150, 21],
  [7, 31, 67, 70],
  [19, 17, 35, 130],
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

/** Around the ends of vectors, of tiles and of pieces of k. */
function randomShapes(seed: number, count: number): Shape[] {
  const random = new Random(seed);
  const size = () => random.pick([0, 1, 1, 2, 3, 4, 8, 15, 16, 17, 31, 33, 64, 65]);
  const depth = () => random.pick([1, 2, 7, 16, 255, 256, 257, 511, 512, 513, 700, 1023, 1024, 1025, 1600]);
  return Array.from({ length: count }, () => [random.pick([1, 1, 2, 3]), size(), size(), depth()] as const);
}

/** Factors of which many sums lie midway between two numbers but for less than double precision shows, or are subnormal. */
function midwayFactors(dtype: ComputeDType): { left: number[]; right: number[] } {
  const [ulp, tiny] = dtype === "f32" ? [2 ** -23, 2 ** -75] : [2 ** -52, 2 ** -537];
  const small = (1 + ulp) * (ulp / 2);
  return { left: [1 + ulp, small, -small, tiny, -3 * tiny, 0], right: [1, 1 - ulp, 1 + ulp, tiny, 1.5 * tiny, -0] };
}

export function matmulContract(context: ContractContext): void {
  const { dtype } = context;

  async function checkProduct(
    [batch, m, n, k]: Shape,
    transposes: (typeof TRANSPOSES)[number],
    { sharedA = false, sharedB = false, salted = false, midway = false } = {},
  ) {
    const a = context.seeded((sharedA ? 1 : batch) * m * k, 1);
    const b = context.seeded((sharedB ? 1 : batch) * k * n, 2);
    if (salted) {
      a.fill(0, 0, k); // 0 * NaN is NaN: no zero may be skipped
      b[0] = Number.NaN;
      b[b.length - 1] = Number.POSITIVE_INFINITY;
    }
    if (midway) {
      const random = new Random(3);
      const { left, right } = midwayFactors(dtype);
      for (const i of a.keys()) a[i] = random.pick(left);
      for (const i of b.keys()) b[i] = random.pick(right);
    }
    const strides = { strideA: sharedA ? 0 : m * k, strideB: sharedB ? 0 : k * n };
    const { product, magnitude } = matmul(a, b, { batch, m, n, k, ...strides, ...transposes }, dtype);
    const tolerance = context.portable ? "bits" : context.sumTolerance(magnitude);
    await context.check(
      { kind: "matmul", ...transposes, dtype },
      { input: { a, b }, output: { output: context.empty(batch * m * n) } },
      (slices) => ({ ...slices, batch, m, n, k, ...strides }),
      ({ output }, label) => expect(output, label).toAgreeWith(product, tolerance),
    );
  }

  describe.each(context.cases(TRANSPOSES))("matmul, transposeA $transposeA, transposeB $transposeB", (transposes) => {
    // How many blocks a launch may have does not depend on the transposes.
    const isTransposed = transposes.transposeA || transposes.transposeB;
    it.each(context.sample(isTransposed ? SHAPES.filter((shape) => !shape.includes(LARGE)) : SHAPES))(
      "%d x [%d, %d] over %d",
      (...shape) => checkProduct(shape, transposes),
    );
    it("of a batch that shares A", () => checkProduct([5, 7, 9, 11], transposes, { sharedA: true }));
    it("of a batch that shares B", () => checkProduct([5, 7, 9, 11], transposes, { sharedB: true }));
    it("of random shapes", async () => {
      for (const shape of context.sample(randomShapes(transposes.transposeA ? 5 : 6, 12)))
        await checkProduct(shape, transposes);
    });
    it("of a shared B and more than one piece of k", () =>
      checkProduct([3, 19, 21, 1100], transposes, { sharedB: true }));
    context.itWithSpecials("rounds each step once", async () => {
      for (const shape of [
        [1, 40, 41, 23],
        [1, 1, 90, 23],
        [1, 90, 1, 23],
      ] as const) {
        await checkProduct(shape, transposes, { midway: true });
      }
    });
    context.itWithSpecials("lets NaN and infinity through", () =>
      checkProduct([2, 19, 21, 23], transposes, { salted: true }),
    );
  });
}

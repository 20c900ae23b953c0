/** The sum over the rows of a matrix becomes part of the product that reads it transposed: the gradients of a bias and of its weight. */
import type { Launch } from "../../backend/spec";
import type { ProductKernels } from "./fuse-epilogues";
import { isSameSlice } from "./layout";
import type { Uses } from "./uses";

export function fuseSums(uses: Uses, kernels: ProductKernels): void {
  for (let index = 0; index < uses.length; index++) {
    const sum = uses.launch("reduce", index);
    if (sum === undefined || sum.kernel.spec.op !== "sum" || sum.outer !== 1 || sum.inner === 1) continue;
    const at = uses.readers(sum.input.memory).find((reader) => isProductOf(uses.launch("matmul", reader), sum));
    const product = at === undefined ? undefined : uses.launch("matmul", at);
    if (product === undefined) continue;
    // The sum moves to the product.
    const [first, last] = [Math.min(index, at!), Math.max(index, at!)];
    const { memory } = sum.output;
    const touched = [...uses.readers(memory), ...uses.writers(memory)];
    const isFree = touched.every((step) => step === index || step < first || step > last);
    if (!isFree || uses.hasHostBetween(first, last) || uses.isWrittenBetween(sum.input.memory, first, last)) continue;
    const kernel = kernels({ ...product.kernel.spec, sums: true });
    uses.replace(at!, { kind: "launch", launch: { ...product, kernel, sums: sum.output }, scalarSource: undefined });
    uses.replace(index, null);
  }
}

function isProductOf(
  product: Launch<"matmul"> | undefined,
  { input, length, inner, kernel }: Launch<"reduce">,
): boolean {
  if (product === undefined || product.sums !== undefined || product.batch !== 1) return false;
  const { transposeA, dtype } = product.kernel.spec;
  const isWhole = product.k === length && product.m === inner && product.n > 0;
  return transposeA && isWhole && dtype === kernel.spec.dtype && isSameSlice(product.a, input);
}

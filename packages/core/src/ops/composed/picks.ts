/** Elements picked by index or mask, and put. */
import { check } from "../../errors/errors";
import type { Tensor } from "../../tensor/tensor";
import { axisOfElements, broadcastShapes, normalizeAxis, showShape, sizeOf } from "../../values/shape";
import { checkDevice } from "../check-device";
import { checkTensor } from "../check-tensor";
import { defineFunction } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { checkBool } from "../elementwise/where";
import { checkIndexDType, checkIndices, checkPositions } from "../indices/check-indices";
import { gather } from "../indices/gather";
import { gatherAlong } from "../indices/gather-along";
import { cumsum } from "../reduce/cumsum";
import { expand } from "../shape/extents";
import { permute, reshape } from "../shape/shape";

/**
 * Elements of the flattened tensor, in the shape of the indices (i32). Negative ones count from the end.
 *
 * @throws OptError BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for an index out of range, where the device shares the host's memory
 * @example
 * take(tensor([[1, 2], [3, 4]]), tensor([3, 0], { dtype: "i32" })); // [4, 1]
 */
export const take = /* @__PURE__ */ defineFunction(
  { name: "take", torch: "torch.take(a, b.long())", tensors: ["n3", "i32 mk"] },
  (x: Tensor, indices: Tensor): Tensor => {
    checkDevice("take", [x, indices]);
    checkIndexDType("take", indices);
    checkPositions("take", indices, x.size);
    const isNegative = elementwise("less", [indices, 0]);
    const places = elementwise("select", [isNegative, elementwise("add", [indices, x.size]), indices]);
    return gather(reshape(x, [x.size]), places);
  },
);

/**
 * Along an axis, the element that each index (i32) says, where the other axes of x and of the indices broadcast.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for an index out of range
 * @example
 * takeAlongDim(tensor([[1, 2], [3, 4]]), tensor([[1]], { dtype: "i32" }), 1); // [[2], [4]]
 */
export const takeAlongDim = /* @__PURE__ */ defineFunction(
  {
    name: "takeAlongDim",
    torch: "torch.take_along_dim(a, b.long(), 1)",
    tensors: ["n3", "i32 14"],
    arguments: [1],
  },
  (x: Tensor, indices: Tensor, axis: number): Tensor => {
    const along = normalizeAxis("takeAlongDim", axis, x.shape.length);
    const isAsLong = x.shape.length === indices.shape.length;
    check(
      isAsLong,
      "BAD_SHAPE",
      "takeAlongDim",
      () => `x and the indices must have as many axes, got ${showShape(x.shape)} and ${showShape(indices.shape)}.`,
    );
    const others = broadcastShapes(
      "takeAlongDim",
      [x, indices].map(({ shape }) => shape.with(along, 1)),
    );
    const full = (tensor: Tensor) => expand(tensor, others.with(along, tensor.shape[along]!));
    return gatherAlong(full(x), full(indices), along);
  },
);

/**
 * Slices of an axis, one for each index (i32 [n]): `gather` along any axis.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for an index out of range
 * @example
 * indexSelect(tensor([[1, 2], [3, 4]]), 1, tensor([1], { dtype: "i32" })); // [[2], [4]]
 */
export const indexSelect = /* @__PURE__ */ defineFunction(
  { name: "indexSelect", torch: "torch.index_select(a, 1, b)", tensors: ["n3m", "i32 k"], between: [1] },
  (x: Tensor, axis: number, indices: Tensor): Tensor => {
    const along = axisOfElements("indexSelect", axis, x.shape);
    checkDevice("indexSelect", [x, indices]);
    checkIndexDType("indexSelect", indices);
    const isList = indices.shape.length <= 1;
    check(isList, "BAD_SHAPE", "indexSelect", () => `indices must be a vector, got ${showShape(indices.shape)}.`);
    const list = reshape(indices, [indices.size]);
    if (x.shape.length === 0) return reshape(gather(reshape(x, [1]), list), []);
    checkIndices("indexSelect", indices, x.shape[along]!);
    const rest = x.shape.map((_, i) => i).filter((i) => i !== along);
    const rows = gather(permute(x, [along, ...rest]), list);
    return permute(
      rows,
      x.shape.map((_, i) => (i === along ? 0 : i < along ? i + 1 : i)),
    );
  },
);

/**
 * x with the elements of `source`, in order, where the mask is true. The mask broadcasts to x. Of a source with fewer elements the last counts
 * again.
 *
 * @throws OptError BAD_DTYPE for a mask that is not bool, or another dtype of the source; BAD_SHAPE, DEVICE_MISMATCH
 * @example
 * maskedScatter(tensor([0, 0, 0]), tensor([true, false, true]), tensor([1, 2])); // [1, 0, 2]
 */
export const maskedScatter = /* @__PURE__ */ defineFunction(
  { name: "maskedScatter", torch: "torch.masked_scatter(a, b, c)", tensors: ["nm", "bool nm", "55"] },
  (x: Tensor, mask: Tensor, source: Tensor): Tensor => {
    checkBool("maskedScatter", mask, "the mask");
    checkTensor("maskedScatter", source, "the source");
    checkDevice("maskedScatter", [x, mask, source]);
    const isSame = source.dtype === x.dtype;
    check(isSame, "BAD_DTYPE", "maskedScatter", () => `the source must be ${x.dtype}, got ${source.dtype}.`);
    const isEnough = source.size > 0 || sizeOf(x.shape) === 0;
    check(
      isEnough,
      "BAD_SHAPE",
      "maskedScatter",
      () => `the source must have elements, got ${showShape(source.shape)}.`,
    );
    const whole = expand(mask, x.shape);
    if (x.size === 0) return reshape(x, x.shape);
    const before = elementwise("sub", [cumsum(reshape(whole, [x.size]), 0), 1]);
    const places = elementwise("minimum", [elementwise("maximum", [before, 0]), source.size - 1]);
    const values = reshape(gather(reshape(source, [source.size]), places), x.shape);
    return elementwise("select", [whole, values, x]);
  },
);

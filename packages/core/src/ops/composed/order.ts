/** Values by their order. */
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { noGrad } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { axisOfElements } from "../../values/shape";
import { cast } from "../cast";
import { defineFunction } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { eq, le, ne } from "../elementwise/logic";
import { gatherAlong } from "../indices/gather-along";
import { positions } from "../indices/positions";
import { checkNotEmpty, maxOver, minOver } from "../reduce/largest";
import { reducedShape, sum } from "../reduce/reduce";
import { scan } from "../reduce/scan";
import { sort } from "../reduce/sort";
import { expand, squeeze } from "../shape/extents";
import { reshape, slice } from "../shape/shape";

const placed = (sorted: Tensor, place: number, axis: number, keepDim: boolean): Tensor => {
  const part = slice(sorted, place, place + 1, axis);
  return keepDim ? part : squeeze(part, axis);
};

/**
 * The value that a share `q` of the others along an axis is below, between two neighbours as near as it is to each. Without an axis, of all
 * elements.
 *
 * @throws OptError BAD_ARGUMENT for a share out of 0 to 1; BAD_DTYPE for integers; BAD_SHAPE for nothing
 * @example
 * quantile(tensor([1, 2, 3, 4]), 0.5); // 2.5
 */
export const quantile = /* @__PURE__ */ defineFunction(
  {
    name: "quantile",
    torch:
      "torch.quantile(a if a.dtype == torch.float64 else a.float(), 0.3, 1).to(a.dtype) # torch.quantile(a, 0.3, 1)",
    tensors: ["n5"],
    arguments: [0.3, 1],
  },
  (x: Tensor, q: number, axis?: number, keepDim = false): Tensor => {
    const isShare = typeof q === "number" && q >= 0 && q <= 1;
    checkValue(isShare, "quantile", "q", "a number from 0 to 1", q, "For example 0.5.");
    check(isFloat(x.dtype), "BAD_DTYPE", "quantile", () => `needs floats, got ${x.dtype}.`, 'Use x.to("f32").');
    if (axis === undefined) return quantile(reshape(x, [x.size]), q, 0, keepDim);
    const along = axisOfElements("quantile", axis, x.shape);
    const last = (x.shape[along] ?? 1) - 1;
    const place = q * last;
    const below = Math.floor(place);
    const { values } = sort(x, along);
    const low = placed(values, below, along, keepDim);
    if (below === place) return low;
    const high = placed(values, below + 1, along, keepDim);
    return elementwise("add", [low, elementwise("mul", [elementwise("sub", [high, low]), place - below])]);
  },
);

/**
 * The middle value along an axis, of two the lower one; without an axis of all elements.
 *
 * @throws OptError BAD_ARGUMENT; BAD_SHAPE for nothing
 * @example
 * median(tensor([3, 1, 2, 5])); // 2
 */
export const median = /* @__PURE__ */ defineFunction(
  { name: "median", torch: "torch.median(a, 1).values", tensors: ["n5"], arguments: [1] },
  (x: Tensor, axis?: number, keepDim = false): Tensor => {
    if (axis === undefined) return median(reshape(x, [x.size]), 0, keepDim);
    const along = axisOfElements("median", axis, x.shape);
    const extent = x.shape[along] ?? 1;
    return placed(sort(x, along).values, (extent - 1) >> 1, along, keepDim);
  },
);

/** Values, and where they were along the axis (i32). */
export type Found = { readonly values: Tensor; readonly indices: Tensor };

/**
 * The k-th smallest along an axis, from 1 on; of equal ones the first comes first.
 *
 * @throws OptError BAD_ARGUMENT for a k that is not there
 * @example
 * kthvalue(tensor([3, 1, 2]), 2).values; // 2
 */
export const kthvalue = /* @__PURE__ */ defineFunction(
  {
    name: "kthvalue",
    torch: "[p.select(1, 1) for p in torch.sort(a, dim=1, stable=True)] # torch.kthvalue(a, 2, 1), of equal ones any",
    tensors: ["n5"],
    arguments: [2, 1],
  },
  (x: Tensor, k: number, axis = -1, keepDim = false): Found => {
    const along = axisOfElements("kthvalue", axis, x.shape);
    const extent = x.shape[along] ?? 1;
    checkValue(Number.isInteger(k) && k >= 1 && k <= extent, "kthvalue", "k", `from 1 to ${extent}`, k);
    checkKept("kthvalue", keepDim);
    const { values, indices } = sort(x, along);
    if (x.shape.length === 0) return { values, indices };
    return { values: placed(values, k - 1, along, keepDim), indices: placed(indices, k - 1, along, keepDim) };
  },
);

function checkKept(where: string, keepDim: boolean): void {
  checkValue(typeof keepDim === "boolean", where, "keepDim", "true or false", keepDim);
}

function runningExtreme(where: string, x: Tensor, axis: number, isSmallest: boolean): Found {
  const along = axisOfElements(where, axis, x.shape);
  const rest = x.shape.map((extent, i) => (i === along ? extent : 1));
  const indices = noGrad(() => {
    const numbers = expand(positions(rest, x.device), x.shape);
    const combine = ([later, at]: readonly Tensor[], [before, atBefore]: readonly Tensor[]): Tensor[] => {
      const [small, large] = isSmallest ? [later!, before!] : [before!, later!];
      const isTaken = elementwise("max", [ne(later!, later!), le(small, large)]);
      return [elementwise("select", [isTaken, later!, before!]), elementwise("select", [isTaken, at!, atBefore!])];
    };
    return x.size === 0 ? numbers : scan([x, numbers], along, combine)[1]!;
  });
  return { values: x.size === 0 ? reshape(x, x.shape) : gatherAlong(x, indices, along), indices };
}

/**
 * The largest of each element along an axis and all before it; of equal ones the last. The first NaN stays.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * cummax(tensor([1, 3, 2]), 0).values; // [1, 3, 3]
 */
export const cummax = /* @__PURE__ */ defineFunction(
  { name: "cummax", torch: "torch.cummax(a, 1)", tensors: ["n5"], arguments: [1] },
  (x: Tensor, axis: number): Found => runningExtreme("cummax", x, axis, false),
);

/**
 * The smallest of each element along an axis and all before it; of equal ones the last. The first NaN stays.
 *
 * @throws OptError BAD_ARGUMENT
 * @example
 * cummin(tensor([3, 1, 2]), 0).values; // [3, 1, 1]
 */
export const cummin = /* @__PURE__ */ defineFunction(
  { name: "cummin", torch: "torch.cummin(a, 1)", tensors: ["n5"], arguments: [1] },
  (x: Tensor, axis: number): Found => runningExtreme("cummin", x, axis, true),
);

/**
 * The smallest and the largest, along an axis or of all.
 *
 * @throws OptError BAD_ARGUMENT; BAD_SHAPE for nothing
 * @example
 * const { min, max } = aminmax(tensor([3, 1, 2])); // 1 and 3
 */
export const aminmax = /* @__PURE__ */ defineFunction(
  { name: "aminmax", torch: "torch.aminmax(a, dim=1)", tensors: ["n5"], arguments: [1] },
  (x: Tensor, axis?: number, keepDim = false): { readonly min: Tensor; readonly max: Tensor } => ({
    min: minOver(x, axis, keepDim),
    max: maxOver(x, axis, keepDim),
  }),
);

/**
 * The middle of the values that are not NaN along an axis, of two the lower one; without an axis of all. NaN where there is no other.
 *
 * @throws OptError BAD_ARGUMENT; BAD_SHAPE for nothing
 * @example
 * nanmedian(tensor([NaN, 3, 1, 2])); // 2
 */
export const nanmedian = /* @__PURE__ */ defineFunction(
  { name: "nanmedian", torch: "torch.nanmedian(a, 1).values", tensors: ["n5"], arguments: [1] },
  (x: Tensor, axis?: number, keepDim = false): Tensor => {
    checkKept("nanmedian", keepDim);
    if (axis === undefined) return nanmedian(reshape(x, [x.size]), 0, keepDim);
    const along = axisOfElements("nanmedian", axis, x.shape);
    checkNotEmpty("nanmedian", x, reducedShape("nanmedian", x, along, keepDim));
    if (x.shape.length === 0) return reshape(x, []);
    const places = noGrad(() => {
      const count = sum(cast(eq(x, x), "f32"), along, true);
      return cast(elementwise("mul", [elementwise("sub", [count, 1]), 0.5]), "i32"); // -0.5 is cut to 0
    });
    const found = gatherAlong(sort(x, along).values, places, along);
    return keepDim ? found : squeeze(found, along);
  },
);

/** What several elements make of one place: sums, products, means and extremes by index. */
import { checkValue } from "../../errors/check-value";
import { checkOptions } from "../../errors/options";
import { overSamples } from "../../tensor/batching";
import { noGrad, record } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { computeDType, isFloat } from "../../values/dtype";
import { cast } from "../cast";
import { defineFunction } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { eq, ne } from "../elementwise/logic";
import { floorDivide } from "../elementwise/remainders";
import { flatPlaces } from "../indices/flat-places";
import { gather, scatterRows } from "../indices/gather";
import { sources, untouched } from "../indices/put-rows";
import { asRows, checkExtents, checkOperands, fitted, scatter, summed } from "../indices/scatter";
import { fill } from "../map";
import { turned } from "../reduce/largest";
import { scan } from "../reduce/scan";
import { argsort } from "../reduce/sort";
import { concat, reshape, slice } from "../shape/shape";

export interface ScatterReduceOptions {
  /** Whether x's own elements take part where something is put. Default true. */
  readonly includeSelf?: boolean;
}

/** A row x of elements, and values with their places in it. */
interface Scattered {
  readonly row: Tensor;
  readonly places: Tensor;
  readonly values: Tensor;
  /** How many values each place gets, f32. */
  readonly counts: Tensor;
  readonly includeSelf: boolean;
}

export type Reduction = "sum" | "prod" | "mean" | "amax" | "amin";

const REDUCTIONS: Readonly<Record<Reduction, (given: Scattered) => Tensor>> = {
  sum: added,
  mean: (given) => {
    const { row, counts, includeSelf } = given;
    const all = elementwise("maximum", [includeSelf ? elementwise("add", [counts, 1]) : counts, 1]);
    const sums = added(given);
    if (!isFloat(row.dtype)) return floorDivide(sums, cast(all, row.dtype));
    const compute = computeDType(row.dtype);
    return cast(elementwise("div", [cast(sums, compute), cast(all, compute)]), row.dtype);
  },
  prod: (given) => {
    const { row, places, values } = given;
    const order = argsort(places);
    const [sorted, factors] = [gather(places, order), gather(values, order)];
    const isLast = fill([row.size], 1, row.dtype, row.device);
    return elementwise("mul", [start(given, 1), scatter(isLast, 0, sorted, productsOfRuns(sorted, factors))]);
  },
  amax: largest,
  amin: (given) => turned(largest({ ...given, row: turned(given.row), values: turned(given.values) })),
};

/**
 * x with what `reduce` makes of the source's elements and x's own at each place: result[index[i, j], j] for axis 0. Indices (i32) have x's
 * number of axes and at most the source's extents. Equal largest and equal smallest share the gradient. An index out of range throws where the
 * device shares the host's memory, and puts nothing elsewhere.
 *
 * @param reduce "sum", "prod", "mean", "amax" or "amin"
 * @throws OptError BAD_SHAPE, BAD_DTYPE, DEVICE_MISMATCH; BAD_ARGUMENT for an index out of range
 * @example
 * scatterReduce(tensor([1, 1]), 0, tensor([0, 0], { dtype: "i32" }), tensor([2, 3]), "prod"); // [6, 1]
 */
export const scatterReduce = /* @__PURE__ */ defineFunction(
  {
    name: "scatterReduce",
    torch: "torch.scatter_reduce(a, 0, b.long(), c, 'amax', include_self=True)",
    tensors: ["3m", "i32 4m", "4m"],
    between: [0],
    arguments: ["amax", { includeSelf: true }],
  },
  (
    x: Tensor,
    axis: number,
    indices: Tensor,
    source: Tensor,
    reduce: Reduction,
    options: ScatterReduceOptions = {},
  ): Tensor => {
    const samples = overSamples(scatterReduce, x, axis, indices, source, reduce, options);
    if (samples) return samples;
    const where = "scatterReduce";
    const along = checkOperands(where, x, axis, indices, source);
    const names = Object.keys(REDUCTIONS).join(", ");
    const isOne = typeof reduce === "string" && Object.hasOwn(REDUCTIONS, reduce);
    checkValue(isOne, where, "reduce", `one of ${names}`, reduce, 'For example "sum".');
    checkOptions(where, options, { includeSelf: "boolean" });
    const { includeSelf = true } = options;
    const put = (x: Tensor, indices: Tensor, source: Tensor): Tensor => {
      checkExtents(where, x, along, indices, source);
      const [row, values] = [reshape(x, [x.size]), reshape(fitted(source, indices.shape), [indices.size])];
      if (x.size === 0 || indices.size === 0) return reshape(untouched(row, values), x.shape);
      const places = reshape(flatPlaces(indices, x.shape, along), [indices.size]);
      const counts = scatterRows(fill([indices.size], 1, "f32", x.device), places, [x.size]);
      return reshape(REDUCTIONS[reduce]({ row, places, values, counts, includeSelf }), x.shape);
    };
    const hasNumber = [x, indices, source].some(({ shape }) => shape.length === 0);
    return hasNumber ? asRows([x, indices, source], put) : put(x, indices, source);
  },
);

/** What the values are put to: x's elements, or a number that changes nothing. */
function start({ row, counts, includeSelf }: Scattered, neutral: number): Tensor {
  return includeSelf ? row : cast(elementwise("select", [elementwise("less", [0, counts]), neutral, row]), row.dtype);
}

function added(given: Scattered): Tensor {
  return elementwise("add", [start(given, 0), summed(given.values, given.places, given.row.shape)]);
}

/** Running products that begin anew where the place changes. */
function productsOfRuns(places: Tensor, factors: Tensor): Tensor {
  const last = places.size - 1;
  const isNew = ne(slice(places, 1), slice(places, 0, last));
  const isFirst = concat([fill([1], 1, "bool", places.device), isNew]);
  const joined = ([product, isFirst]: readonly Tensor[], [before, isFirstBefore]: readonly Tensor[]) => [
    elementwise("mul", [
      product!,
      elementwise("select", [isFirst!, fill([], 1, before!.dtype, before!.device), before!]),
    ]),
    elementwise("max", [isFirst!, isFirstBefore!]),
  ];
  return scan([factors, isFirst], 0, joined)[0]!;
}

/** The largest: of the values in order, the last that is put to a place. */
function largest({ row, places, values, counts, includeSelf }: Scattered): Tensor {
  const { result, isOfSelf, isOfValue, share } = noGrad(() => {
    const order = argsort(values);
    const { isPut, from } = sources(gather(places, order), row.size);
    const found = gather(values, gather(order, from));
    const withSelf = includeSelf ? elementwise("maximum", [found, row]) : found;
    const result = elementwise("select", [isPut, withSelf, row]);
    const isKept = includeSelf ? eq(row, result) : eq(counts, 0);
    const isOfValue = eq(values, gather(result, places));
    const equals = elementwise("add", [cast(isKept, "f32"), scatterRows(cast(isOfValue, "f32"), places, row.shape)]);
    const share = cast(elementwise("maximum", [equals, 1]), row.dtype);
    return { result, isOfSelf: isKept, isOfValue, share };
  });
  return record(
    "scatterReduce",
    result,
    [row, values],
    [isOfSelf, isOfValue, share, places],
    (g, [isOfSelf, isOfValue, share, places]) => {
      const each = elementwise("div", [g, share!]);
      const given = (isOf: Tensor, part: Tensor) => elementwise("select", [isOf, part, 0]);
      return [given(isOfSelf!, each), given(isOfValue!, gather(each, places!))];
    },
  );
}

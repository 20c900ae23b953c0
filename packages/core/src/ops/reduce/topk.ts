/** The largest or smallest elements of an axis, in order. */

import { tidy } from "../../device/scope";
import { check } from "../../errors/errors";
import { checkOptions } from "../../errors/options";
import { show } from "../../errors/show";
import { overSamples } from "../../tensor/batching";
import { noGrad } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { isFloat } from "../../values/dtype";
import { axisOfElements } from "../../values/shape";
import { cast } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { eq, ne } from "../elementwise/logic";
import { gatherAlong } from "../indices/gather-along";
import { positions } from "../indices/positions";
import { fill } from "../map";
import { concat, reshape, slice, transpose } from "../shape/shape";
import { argmax, maxOver } from "./largest";
import { argsort } from "./sort";

export interface TopkOptions {
  /** The largest; the smallest if false. Default true. */
  readonly largest?: boolean;
}

/** What `topk` found: both have extent k along the axis. */
export interface Topk {
  readonly values: Tensor;
  /** i32 */
  readonly indices: Tensor;
}

/** Where the host sorts, more rounds than these take longer than sorting all. */
const MOST_ROUNDS = 16;

/**
 * The k largest (or smallest) elements along an axis, in order, and where they stand; of equals the first comes first, NaN counts as largest.
 * Their gradient goes back to where they stand. In k rounds over the axis; for more than 16 devices with the host's memory sort it.
 *
 * @throws OptError BAD_ARGUMENT for a k that is no count of elements of the axis
 * @example
 * const { values, indices } = topk(tensor([1, 5, 3]), 2); // [5, 3] and [1, 2]
 */
export const topk = /* @__PURE__ */ definePrimitive(
  { torch: "a.topk($0, $1)", tensors: ["n5"], arguments: [2, 1] },
  (x: Tensor, k: number, axis = -1, options: TopkOptions = {}): Topk => {
    const samples = overSamples(topk, x, k, axis, options);
    if (samples) return samples;
    checkTensor("topk", x);
    checkOptions("topk", options, { largest: "boolean" });
    const { largest = true } = options;
    const along = axisOfElements("topk", axis, x.shape);
    const extent = x.shape[along] ?? 1;
    const isCount = Number.isInteger(k) && k >= 0 && k <= extent;
    check(
      isCount,
      "BAD_ARGUMENT",
      "topk",
      () => `k must be an integer from 0 to ${extent}, got ${show(k)}.`,
      "Take fewer.",
    );
    return tidy(() => {
      if (x.shape.length === 0) {
        const { values, indices } = topk(reshape(x, [1]), 1, 0, options);
        return { values: reshape(values, []), indices: reshape(indices, []) };
      }
      if (k > MOST_ROUNDS && x.device.backend.sharesMemory) {
        const indices = slice(argsort(x, along, { descending: largest }), 0, k, along);
        return { values: gatherAlong(x, indices, along), indices };
      }
      const { places, values } = noGrad(() => tidy(() => ranked(transpose(x, along, -1), k, largest)));
      const indices = transpose(places, along, -1);
      // Those of floats are taken where they stand, which has a gradient.
      return {
        values: isFloat(x.dtype) ? gatherAlong(x, indices, along) : cast(transpose(values, along, -1), x.dtype),
        indices,
      };
    });
  },
);

/** Along the last axis, best first: where they stand, and of integers the values. */
function ranked(x: Tensor, k: number, largest: boolean): { places: Tensor; values: Tensor } {
  const whole = !isFloat(x.dtype);
  const order = largest ? (whole ? cast(x, "i32") : x) : smallestFirst(x);
  const least = whole ? -(2 ** 31) : Number.NEGATIVE_INFINITY;
  const at = positions([x.shape.at(-1)!], x.device);
  const none = x.shape.with(-1, 0);
  const [places, values] = [[positions(none, x.device)], [positions(none, x.device)]];
  let free = fill(x.shape, 1, "bool", x.device);
  const isNumber = whole || largest ? undefined : eq(x, x);
  const round = (before: Tensor) => {
    const open = isNumber === undefined ? before : someOr(elementwise("mul", [before, isNumber]), before);
    const rest = elementwise("select", [open, order, least]);
    const best = argmax(rest, -1, true);
    // Where nothing but the least is left, what is found may be taken already: then comes the first that is free.
    const isFree = maxOver(elementwise("mul", [open, eq(at, best)]), -1, true);
    const next = elementwise("select", [isFree, best, argmax(open, -1, true)]);
    const after = elementwise("mul", [before, ne(at, next)]);
    return { next, after, value: whole ? maxOver(rest, -1, true) : undefined };
  };
  for (let i = 0; i < k; i++) {
    const { next, after, value } = tidy(() => round(free));
    free.dispose();
    free = after;
    places.push(next);
    if (value !== undefined) values.push(value);
  }
  return { places: concat(places, -1), values: turnedBack(concat(values, -1), largest) };
}

/** Rows of the first where one of them is true, else of the second. */
const someOr = (some: Tensor, others: Tensor) => elementwise("select", [maxOver(some, -1, true), some, others]);

/** The other order. NaN, like Infinity, is least. */
function smallestFirst(x: Tensor): Tensor {
  if (!isFloat(x.dtype)) return elementwise("sub", [-1, cast(x, "i32")]);
  const turned = elementwise("neg", [x]);
  return elementwise("select", [eq(x, x), turned, Number.NEGATIVE_INFINITY]);
}

const turnedBack = (values: Tensor, largest: boolean) => (largest ? values : elementwise("sub", [-1, values]));

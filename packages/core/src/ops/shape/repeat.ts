/** Elements in reverse, shifted round, and repeated. */

import { tidy } from "../../device/scope";
import { checkValue } from "../../errors/check-value";
import { check } from "../../errors/errors";
import { show } from "../../errors/show";
import { overSamples } from "../../tensor/batching";
import type { Tensor } from "../../tensor/tensor";
import { axisOfElements, denseStrides, normalizeAxis, type Shape, showShape, sizeOf } from "../../values/shape";
import { clone } from "../cast";
import { checkTensor } from "../check-tensor";
import { definePrimitive } from "../define-function";
import { elementwise } from "../elementwise/elementwise";
import { gather } from "../indices/gather";
import { places } from "../indices/positions";
import { expand } from "./extents";
import { concat, reshape, slice } from "./shape";

/**
 * The axes in reverse order of their elements, as a copy.
 *
 * @throws OptError BAD_ARGUMENT for axes that are not there, or named twice
 * @example
 * flip(tensor([1, 2, 3]), 0); // [3, 2, 1]
 */
export const flip = /* @__PURE__ */ definePrimitive(
  { torch: "a.flip(($0,))", arguments: ["$axis"] },
  (x: Tensor, axes: number | readonly number[]): Tensor => {
    const samples = overSamples(flip, x, axes);
    if (samples) return samples;
    checkTensor("flip", x);
    const turned = axesOf(axes, (axis) => axisOfElements("flip", axis, x.shape), "flip");
    const differ = new Set(turned).size === turned.length;
    check(differ, "BAD_ARGUMENT", "flip", () => `axes must differ, got ${show(axes)}.`, "Name each once.");
    if (turned.length === 0 || x.shape.length === 0) return clone(x);
    // What follows the last axis that is turned moves in rows.
    const rows = x.shape.slice(0, Math.max(...turned) + 1);
    const rest = x.shape.slice(rows.length);
    const strides = denseStrides(rows);
    return tidy(() => {
      const steps = rows.map((extent, i) => {
        const at = (place: number) => (turned.includes(i) ? extent - 1 - place : place) * strides[i]!;
        return places([extent, ...rows.slice(i + 1).fill(1)], x.device, at);
      });
      const order = steps.reduce((sum, step) => elementwise("add", [sum, step]));
      return reshape(gather(reshape(x, [sizeOf(rows), ...rest]), order), x.shape);
    });
  },
);

/**
 * The elements moved along axes by `shifts`; what leaves at the end comes back at the start. Without axes x is rolled as one row.
 *
 * @throws OptError BAD_ARGUMENT for axes that are not there, or another count of shifts
 * @example
 * roll(tensor([1, 2, 3]), 1); // [3, 1, 2]
 */
export const roll = /* @__PURE__ */ definePrimitive(
  { torch: "a.roll($0, $1)", tensors: ["nmk"], arguments: [2, 1] },
  (x: Tensor, shifts: number | readonly number[], axes?: number | readonly number[]): Tensor => {
    const samples = overSamples(roll, x, shifts, axes);
    if (samples) return samples;
    checkTensor("roll", x);
    const list = typeof shifts === "number" ? [shifts] : shifts;
    const areWhole = Array.isArray(list) && list.every(Number.isInteger);
    checkValue(areWhole, "roll", "shifts", "an integer or a list of them", shifts, "For example 1.");
    const along =
      axes === undefined ? [0] : axesOf(axes, (axis) => normalizeAxis("roll", axis, x.shape.length), "roll");
    check(
      list.length === along.length,
      "BAD_ARGUMENT",
      "roll",
      () => `needs a shift for each axis, got ${list.length} for ${along.length}.`,
      "For example roll(x, [1, 2], [0, 1]).",
    );
    return tidy(() => {
      const flat = axes === undefined ? reshape(x, [x.size]) : x;
      const rolled = along.reduce((rest, axis, i) => shifted(rest, list[i]!, axis), flat);
      return rolled === x || rolled === flat ? clone(x) : reshape(rolled, x.shape);
    });
  },
);

function shifted(x: Tensor, shift: number, axis: number): Tensor {
  const extent = x.shape[axis]!;
  const start = extent === 0 ? 0 : (((extent - shift) % extent) + extent) % extent;
  return start === 0 ? x : concat([slice(x, start, extent, axis), slice(x, 0, start, axis)], axis);
}

/**
 * x beside itself: `repeats` copies along each axis, the last one being x's last. More repeats than axes add axes in front.
 *
 * @throws OptError BAD_ARGUMENT unless there is a count >= 0 for each axis
 * @example
 * repeat(tensor([1, 2]), [2, 2]); // [[1, 2, 1, 2], [1, 2, 1, 2]]
 */
export const repeat = /* @__PURE__ */ definePrimitive(
  { torch: "a.repeat($0)", tensors: ["nm"], arguments: [[2, 1, 3]] },
  (x: Tensor, repeats: Shape): Tensor => {
    const samples = overSamples(repeat, x, repeats);
    if (samples) return samples;
    checkTensor("repeat", x);
    const isList = Array.isArray(repeats) && repeats.every((count) => Number.isInteger(count) && count >= 0);
    checkValue(isList, "repeat", "repeats", "a list of counts", repeats, "For example [2, 1].");
    const missing = repeats.length - x.shape.length;
    check(
      missing >= 0,
      "BAD_ARGUMENT",
      "repeat",
      () => `needs a count for each axis of ${showShape(x.shape)}, got ${show(repeats)}.`,
      "1 keeps an axis.",
    );
    const shape = [...Array<number>(missing).fill(1), ...x.shape];
    return tidy(() => {
      const apart = reshape(
        x,
        shape.flatMap((extent) => [1, extent]),
      );
      const wide = expand(
        apart,
        shape.flatMap((extent, i) => [repeats[i]!, extent]),
      );
      return reshape(
        wide,
        shape.map((extent, i) => extent * repeats[i]!),
      );
    });
  },
);

function axesOf(axes: number | readonly number[], normal: (axis: number) => number, where: string): number[] {
  const list = typeof axes === "number" ? [axes] : axes;
  checkValue(Array.isArray(list), where, "axes", "an integer or a list of them", axes, "For example 0.");
  return list.map(normal);
}

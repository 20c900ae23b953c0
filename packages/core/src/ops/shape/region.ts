/** Strided parts of a tensor: what positions and ranges choose, read and written in one copy. */

import { overSamples } from "../../tensor/batching";
import type { Chosen, PositionRange } from "../../tensor/copy-of";
import { record } from "../../tensor/tape";
import { Tensor } from "../../tensor/tensor";
import { broadcastStrides, denseStrides, type Shape } from "../../values/shape";
import { copyInto } from "../cast";
import { fill } from "../map";
import { copyBox, dense, type Place } from "./copy-box";

export interface Region extends Place {
  /** Of the tensor that it is a part of, with what is chosen of each of its axes. */
  readonly whole: Shape;
  readonly chosen: readonly Chosen[];
  /** Of the axes that are left. */
  readonly shape: Shape;
}

/** @param chosen for each axis of `whole`, within its extent */
export function regionOf(whole: Shape, chosen: readonly Chosen[]): Region {
  const own = denseStrides(whole);
  const [shape, strides]: [number[], number[]] = [[], []];
  let offset = 0;
  for (const [axis, choice] of chosen.entries()) {
    const stride = own[axis]!;
    if (typeof choice === "number") offset += choice * stride;
    else {
      const { start, step, length } = choice ?? { start: 0, step: 1, length: whole[axis]! };
      offset += start * stride;
      shape.push(length);
      strides.push(step * stride);
    }
  }
  return { whole, chosen, offset, shape, strides };
}

/** Python's rule for `start:end:step`: negative positions count from the end, and those beyond an end are cut to it. */
export function rangeWithin(extent: number, start = 0, end = extent, step = 1): PositionRange {
  const position = (at: number) => Math.min(Math.max(at < 0 ? at + extent : at, 0), extent);
  const first = position(start);
  return { start: first, step, length: Math.ceil(Math.max(position(end) - first, 0) / step) };
}

/** The region's elements, as a copy. */
export function taken(name: string, x: Tensor, region: Region): Tensor {
  const samples = overSamples(taken, name, x, region);
  if (samples) return samples;
  const output = Tensor.empty(region.shape, x.dtype, x.device);
  copyBox(x, output, region.shape, region, dense(region.shape));
  return record(name, output, [x], [], (g) => [placed(name, g, region)]);
}

/** Zeros with x in the region: the adjoint of `taken`. */
function placed(name: string, x: Tensor, region: Region): Tensor {
  const output = fill(region.whole, 0, x.dtype, x.device);
  copyBox(x, output, region.shape, dense(region.shape), region);
  return record("placed", output, [x], [], (g) => [taken(name, g, region)]);
}

/** x with zeros in the region: what is left of a gradient where elements were overwritten. */
export function cleared(x: Tensor, region: Region): Tensor {
  const samples = overSamples(cleared, x, region);
  if (samples) return samples;
  const output = Tensor.empty(region.whole, x.dtype, x.device);
  copyInto(x, output);
  const zero = fill([], 0, x.dtype, x.device);
  write(zero, output, region);
  zero.dispose();
  return record("cleared", output, [x], [], (g) => [cleared(g, region)]);
}

/** Writes a value, which broadcasts to the region's shape, into it. Not recorded. */
export function write(value: Tensor, target: Tensor, region: Region): void {
  copyBox(value, target, region.shape, { offset: 0, strides: broadcastStrides(value.shape, region.shape) }, region);
  target.storage.overwritten();
}

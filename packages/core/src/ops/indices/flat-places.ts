/** Where elements chosen along an axis are in memory. */
import type { Tensor } from "../../tensor/tensor";
import { denseStrides, type Shape } from "../../values/shape";
import { elementwise } from "../elementwise/elementwise";
import { positions } from "./positions";

/** For each index the place in a row-major tensor of `shape` at the same position, but for the axis, where it is the index. -1 for one out of range. */
export function flatPlaces(indices: Tensor, shape: Shape, axis: number): Tensor {
  const strides = denseStrides(shape);
  let places = elementwise("mul", [indices, strides[axis]!]);
  for (const [i, extent] of indices.shape.entries()) {
    if (i === axis || extent === 1) continue;
    const along = positions([extent, ...shape.slice(i + 1).fill(1)], indices.device, strides[i]);
    places = elementwise("add", [places, along]);
  }
  // An index beyond its row must not reach into another one.
  const inside = elementwise("mul", [elementwise("le", [0, indices]), elementwise("less", [indices, shape[axis]!])]);
  return elementwise("select", [inside, places, -1]);
}

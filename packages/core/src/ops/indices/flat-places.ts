/** Where elements chosen along an axis are in memory. */
import { Expression } from "../../rule/expression";
import { type Program, trace } from "../../rule/program";
import { add, less, mul, where } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import { denseStrides, type Shape } from "../../values/shape";
import { computeIn } from "../cast";
import { computeOn } from "../compute";
import { launchMap } from "../map";
import { floats, places } from "./positions";

const PLACE = /* @__PURE__ */ tracePlace();

function tracePlace(): Program {
  const [index, rest] = [0, 1].map((slot) => new Expression("buffer", [], slot)) as [Expression, Expression];
  const [stride, extent] = [0, 1].map((slot) => new Expression("scalar", [], slot)) as [Expression, Expression];
  // An index beyond its row must not reach into another one.
  const place = where(less(index, extent), add(mul(index, stride), rest), -1);
  return trace(["index", "rest"], ["stride", "extent"], [{ slot: 0, expression: where(less(index, 0), -1, place) }]);
}

/** For each index the place in a row-major tensor of `shape` at the same position, but for the axis, where it is the index. -1 for one out of range. */
export function flatPlaces(indices: Tensor, shape: Shape, axis: number): Tensor {
  const { device } = indices;
  const strides = denseStrides(shape);
  const others = indices.shape.with(axis, 1);
  const own = denseStrides(others);
  const restAt = (i: number) =>
    others.reduce((sum, extent, a) => sum + (Math.floor(i / own[a]!) % extent) * strides[a]!, 0);
  const compute = computeOn(device, "i32");
  const along = compute === "f64" ? floats(others, compute, device, restAt) : places(others, device, restAt);
  return computeIn(compute, [indices], "i32", (list) =>
    launchMap(PLACE, compute, [list!, along], [strides[axis]!, shape[axis]!], indices.shape),
  );
}

/** Elements that a mask chooses, and where they are: how many the host has to know, so it waits for the device. */

import { tidy } from "../../device/scope";
import type { Tensor } from "../../tensor/tensor";
import { broadcastShapes, denseStrides, type Shape, sameShape } from "../../values/shape";
import { checkDevice } from "../check-device";
import { checkTensor } from "../check-tensor";
import { checkBool } from "../elementwise/where";
import { expand } from "../shape/extents";
import { reshape } from "../shape/shape";
import { gather } from "./gather";
import { places } from "./positions";

/**
 * The elements of x where the mask is true, in order: `x[mask]`. Mask and x are broadcast. The gradient goes back to where they were.
 *
 * @throws OptError BAD_DTYPE for a mask that is not bool; BAD_SHAPE, DEVICE_MISMATCH; UNSUPPORTED in a compiled function
 * @example
 * const x = tensor([1, 5, 3]);
 * await maskedSelect(x, x.gt(2)); // [5, 3]
 */
export function maskedSelect(x: Tensor, mask: Tensor): Promise<Tensor> {
  checkTensor("maskedSelect", x);
  checkBool("maskedSelect", mask, "the mask");
  checkDevice("maskedSelect", [x, mask]);
  x.device.checkReadable();
  const shape = broadcastShapes("maskedSelect", [x.shape, mask.shape]);
  return chosen(stretched(x, shape), stretched(mask, shape));
}

async function chosen(x: Tensor, mask: Tensor): Promise<Tensor> {
  const found = trueAt(await mask.data());
  mask.dispose();
  return tidy(() => {
    const row = reshape(x, [x.size]);
    x.dispose();
    return gather(row, placesOf(found, [found.length], x));
  });
}

/**
 * Where x is not 0, an i32 row [axes of x] for each such element, in row-major order: torch.nonzero.
 *
 * @throws OptError UNSUPPORTED in a compiled function
 * @example
 * await nonzero(tensor([[0, 1], [2, 0]])); // [[0, 1], [1, 0]]
 */
export function nonzero(x: Tensor): Promise<Tensor> {
  checkTensor("nonzero", x);
  x.device.checkReadable();
  return rowsOf(x);
}

async function rowsOf(x: Tensor): Promise<Tensor> {
  const found = trueAt(await x.data());
  const strides = denseStrides(x.shape);
  const rank = strides.length;
  const coordinates = found.flatMap((place) => strides.map((stride, i) => Math.floor(place / stride) % x.shape[i]!));
  return placesOf(coordinates, [found.length, rank], x);
}

/** The places of what is not 0. */
export function trueAt(values: ArrayLike<number>): number[] {
  const found: number[] = [];
  for (let i = 0; i < values.length; i++) if (values[i] !== 0) found.push(i);
  return found;
}

const placesOf = (numbers: readonly number[], shape: Shape, { device }: Tensor) =>
  places(shape, device, (i) => numbers[i]!);

/** A tensor of its own, of this shape: it lives until the device has answered. */
const stretched = (x: Tensor, shape: Shape) => (sameShape(x.shape, shape) ? reshape(x, shape) : expand(x, shape));

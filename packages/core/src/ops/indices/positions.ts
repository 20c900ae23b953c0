/** The numbers 0 .. n - 1 on a device, for ops that compare places. */
import type { Device } from "../../device/device";
import { Tensor } from "../../tensor/tensor";
import type { Shape } from "../../values/shape";

/** [0, step, 2 step, ...] as i32, in a shape; written again in each replay. */
export function positions(shape: Shape, device: Device, step = 1): Tensor {
  return places(shape, device, (i) => i * step);
}

/** i32 that the host knows by their numbers, in a shape; written again in each replay. */
export function places(shape: Shape, device: Device, at: (i: number) => number): Tensor {
  const result = Tensor.empty(shape, "i32", device);
  const numbers = Int32Array.from({ length: result.size }, (_, i) => at(i));
  const bytes = () => new Uint8Array(numbers.buffer);
  device.write(result.memorySlice(), bytes(), bytes);
  return result;
}

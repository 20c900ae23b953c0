/** The numbers 0 .. n - 1 on a device, for ops that compare places. */
import type { Device } from "../../device/device";
import { Tensor } from "../../tensor/tensor";
import type { ComputeDType, DType } from "../../values/dtype";
import type { Shape } from "../../values/shape";

/** [0, step, 2 step, ...] as i32, in a shape: a constant of compiled functions. */
export function positions(shape: Shape, device: Device, step = 1): Tensor {
  return places(shape, device, (i) => i * step);
}

/** i32 that the host knows by their numbers, in a shape: a constant of compiled functions. */
export function places(shape: Shape, device: Device, at: (i: number) => number): Tensor {
  return written(shape, "i32", device, (size) => Int32Array.from({ length: size }, (_, i) => at(i)));
}

/** The same for floats. */
export function floats(shape: Shape, dtype: ComputeDType, device: Device, at: (i: number) => number): Tensor {
  return written(shape, dtype, device, (size) => {
    const numbers = dtype === "f64" ? new Float64Array(size) : new Float32Array(size);
    for (let i = 0; i < size; i++) numbers[i] = at(i);
    return numbers;
  });
}

function written(shape: Shape, dtype: DType, device: Device, make: (size: number) => ArrayBufferView): Tensor {
  const result = Tensor.empty(shape, dtype, device);
  device.write(result.memorySlice(), new Uint8Array(make(result.size).buffer));
  return result;
}

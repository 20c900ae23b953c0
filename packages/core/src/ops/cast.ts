/** Copies: clones, casts between dtypes and moves between devices. */

import type { Device } from "../device/device";
import { tidy } from "../device/scope";
import { check } from "../errors/errors";
import { overSamples } from "../tensor/batching";
import { readBytesSync } from "../tensor/read";
import { record } from "../tensor/tape";
import { Tensor } from "../tensor/tensor";
import { type DType, isFloat, numbersOf } from "../values/dtype";
import { checkFloat64 } from "./check-tensor";

/**
 * target = source, in place: elements in order, converted between dtypes. Of an i32 u8 takes the low byte, which is its value modulo 256.
 * Not recorded.
 */
export function copyInto(source: Tensor, target: Tensor): void {
  if (source.dtype === "i32" && target.dtype === "u8") copyLowBytes(source, target);
  else copyElements(source, target);
  target.storage.overwritten();
}

/** As `copyInto` between numbers, without counting as a write. */
export function copyElements(source: Tensor, target: Tensor): void {
  const [from, count] = numbersOf(source.dtype);
  target.device.launch({
    kind: "copy",
    kernel: target.device.kernel({ kind: "copy", from, to: numbersOf(target.dtype)[0] }),
    source: source.memorySlice(),
    target: target.memorySlice(),
    shape: [source.size * count],
    sourceStrides: [1],
    targetStrides: [1],
  });
}

function copyLowBytes(source: Tensor, target: Tensor): void {
  const { memory, byteOffset } = source.memorySlice();
  const { size, device } = source;
  if (size === 0) return;
  device.launch({
    kind: "copy",
    kernel: device.kernel({ kind: "copy", from: "u8", to: "u8" }),
    source: { memory, byteOffset, length: 4 * size - 3 },
    target: target.memorySlice(),
    shape: [size],
    sourceStrides: [4],
    targetStrides: [1],
  });
}

export function clone(x: Tensor): Tensor {
  const samples = overSamples(clone, x);
  if (samples) return samples;
  x.checkAlive();
  const output = Tensor.empty(x.shape, x.dtype, x.device);
  copyInto(x, output);
  return record("clone", output, [x], [], (g) => [g]);
}

/** Memory that nobody else sees: x's own where that is so, else a copy. */
export function owned(x: Tensor): Tensor {
  const samples = overSamples(owned, x);
  if (samples) return samples;
  return x.storage.isShared ? clone(x) : x.alias();
}

/** x in another dtype, or x itself. */
export function cast(x: Tensor, dtype: DType): Tensor {
  const samples = overSamples(cast, x, dtype);
  if (samples) return samples;
  if (x.dtype === dtype) return x;
  checkCast("to", x.dtype, dtype, x.device);
  const result = Tensor.empty(x.shape, dtype, x.device);
  copyInto(x, result);
  if (!isFloat(dtype)) return result;
  const from = x.dtype;
  return record("to", result, [x], [], (g) => [cast(g, from)]);
}

/** @throws OptError BAD_DTYPE between complex and real; UNSUPPORTED for f64 where the device lacks it */
function checkCast(where: string, from: DType, to: DType, device: Device): void {
  checkFloat64(where, from, device);
  checkFloat64(where, to, device);
  const isPossible = from === to || (from !== "c64" && to !== "c64");
  check(
    isPossible,
    "BAD_DTYPE",
    where,
    () => `there is no cast between complex and real numbers, got ${from} and ${to}.`,
    "Use viewAsReal(x) and viewAsComplex(x).",
  );
}

/** Computes in another dtype and casts the result, leaving nothing else behind. `body` gets the tensors cast. */
export function computeIn(
  compute: DType,
  tensors: readonly Tensor[],
  result: DType,
  body: (...tensors: Tensor[]) => Tensor,
): Tensor {
  return tidy(() => cast(body(...tensors.map((tensor) => cast(tensor, compute))), result));
}

/** x on another device, or x itself. */
export function move(x: Tensor, device: Device): Tensor {
  const samples = overSamples(move, x, device);
  if (samples) return samples;
  if (x.device === device) return x;
  check(
    !x.requiresGrad,
    "DEVICE_MISMATCH",
    "to",
    () => "a move between devices is not recorded, got a tensor that requires a gradient.",
    "Use detach().to(device) and mark the result.",
  );
  const output = Tensor.empty(x.shape, x.dtype, device);
  device.write(output.memorySlice(), readBytesSync(x));
  return output;
}

/** target = source, in place, converted and moved where they differ. Not recorded. */
export function copyFrom(target: Tensor, source: Tensor): void {
  // Converted where the numbers are: their device has their dtype.
  if (source.dtype !== target.dtype) {
    checkCast("set", source.dtype, target.dtype, source.device);
    checkFloat64("set", target.dtype, target.device);
  }
  const values = source.alias();
  const converted = source.device === target.device ? values : cast(values, target.dtype);
  const here = move(converted, target.device);
  copyInto(here, target);
  for (const made of new Set([here, converted, values])) made.dispose();
}

/** What JSON.stringify writes of a tensor: a line for logs. Where it comes back in a tensor's place, the numbers are lost. */
import { check } from "../errors/errors";
import { isPlainObject } from "../errors/show";
import type { DType } from "../values/dtype";
import type { Shape } from "../values/shape";
import type { Tensor } from "./tensor";

export interface Summary {
  shape: Shape;
  dtype: DType;
  device: string;
}

export function summaryOf({ shape, dtype, device }: Tensor): Summary {
  return { shape, dtype, device: device.name };
}

/** Checks that a loaded value is not a tensor's summary. @throws OptError BAD_STATE */
export function checkNotSummary(where: string, name: string, value: unknown): void {
  check(
    !(isPlainObject(value) && ["shape", "dtype", "device"].every((key) => Object.hasOwn(value, key))),
    "BAD_STATE",
    where,
    () => `${name} was written by JSON.stringify, which keeps no numbers.`,
    "Save with @opt/checkpoint, or x.tolist().",
  );
}

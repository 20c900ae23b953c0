/** Lengths of sequences from wherever they come: lists are checked on the host, tensors stay on their device. */
import { check, checkTensor, type Device, show, Tensor, tensor } from "@opt/core";

export type Lengths = Tensor | readonly number[] | Int32Array;

/** As i32 [count], none above `most` where the host knows them. @throws OptError BAD_SHAPE, BAD_ARGUMENT */
export function lengthsOf(
  where: string,
  name: string,
  lengths: Lengths,
  count: number,
  most: number,
  device: Device,
): Tensor {
  const isList = Array.isArray(lengths) || lengths instanceof Int32Array;
  if (isList) {
    const other = Array.from(lengths).find((n) => !(Number.isInteger(n) && n >= 0 && n <= most));
    check(
      other === undefined,
      "BAD_ARGUMENT",
      where,
      () => `${name} must be integers from 0 to ${most}, got ${show(other)}.`,
      "Check the extents of the tensors.",
    );
  } else checkTensor(where, lengths, name);
  const given = lengths instanceof Tensor ? lengths.to("i32") : tensor(Array.from(lengths), { dtype: "i32", device });
  const fits = given.size === count && given.shape.length <= 1;
  check(fits, "BAD_SHAPE", where, () => `${name} must be [${count}], got [${given.shape}].`, "One for each sequence.");
  return given.reshape([count]);
}

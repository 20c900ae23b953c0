/** Lengths of sequences in a batch: what lies beyond a sequence's end is padding. */
import { arange, check, checkOptions, show, Tensor, tensor } from "@opt/core";

/** How forward of RNN, LSTM and GRU goes along. */
export interface RecurrentCall {
  /**
   * The number of places of each sequence: integers, or a tensor [batch] of them. Compiled functions need the tensor. Results beyond a
   * sequence's end are 0, last states are those at its end, and the reverse direction begins there: what PyTorch packs sequences for.
   */
  readonly lengths?: Tensor | readonly number[];
}

/** bool [length, batch, 1]: true up to each sequence's end. @throws OptError BAD_ARGUMENT, BAD_DTYPE, BAD_SHAPE */
export function seenPlaces(where: string, call: RecurrentCall, sequence: Tensor): Tensor | undefined {
  checkOptions(where, call, { lengths: "any" });
  if (call.lengths === undefined) return undefined;
  const [length, batch] = sequence.shape as [number, number];
  const { device } = sequence;
  const lengths = asTensor(where, call.lengths, length, device);
  const fits = String(lengths.shape) === String([batch]);
  check(fits, "BAD_SHAPE", where, () => `lengths must be [${batch}], one a sequence, got [${lengths.shape}].`);
  return arange(length, { device }).unsqueeze(1).lt(lengths).unsqueeze(-1);
}

function asTensor(where: string, lengths: unknown, length: number, device: Tensor["device"]): Tensor {
  if (lengths instanceof Tensor) {
    const isInteger = lengths.dtype === "i32" || lengths.dtype === "u8";
    check(isInteger, "BAD_DTYPE", where, () => `lengths must be integers, got ${lengths.dtype}.`, 'Use dtype: "i32".');
    return lengths;
  }
  const isLength = (value: unknown) => Number.isInteger(value) && (value as number) >= 1 && (value as number) <= length;
  const fits = Array.isArray(lengths) && lengths.every(isLength);
  check(
    fits,
    "BAD_ARGUMENT",
    where,
    () => `lengths must be integers in [1, ${length}], got ${show(lengths)}.`,
    "One for each sequence of the batch.",
  );
  return tensor(lengths as number[], { dtype: "i32", device });
}

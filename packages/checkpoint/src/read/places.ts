/** Where loaded bytes go: new tensors, plain tensors, or tensors that are there already. */
import { check, empty, hostBytes, type Tensor } from "@opt/core";
import { storedDType, tensorDType } from "../format/dtype";
import { isCounterName } from "../format/optimizer-state";
import { byteLengthOf } from "../format/shard";
import { isTensor, type PlainTensor } from "../format/tensors";
import { heldDType, toTensor } from "./cast";
import type { SelectedBox } from "./select";

export interface LoadedPlainTensor extends PlainTensor {
  readonly data: Uint8Array;
  /** Where in the whole tensor the data lie, and the whole's shape. */
  readonly offset: readonly number[];
  readonly wholeShape: readonly number[];
}

/** Memory to read a tensor into. */
export interface Place<T = Tensor | LoadedPlainTensor> {
  readonly data: Uint8Array;
  finish(): T;
  /** Gives back what it holds, where `finish` is never called. */
  drop?(): void;
}

export type Places = (one: SelectedBox) => Place;

export function plainPlace(one: SelectedBox): Place<LoadedPlainTensor> {
  const data = new Uint8Array(byteLengthOf(one));
  return { data, finish: () => plainTensor(one, data) };
}

/** New tensors, read straight into their memory if the device lets us, so that nothing is held twice. */
export function tensorPlaces(): Places {
  let isShared = true;
  return (one) => {
    const { name, dtype } = one.tensor;
    if (isShared) {
      const made = empty(one.box.size, { dtype: tensorDType(dtype)! });
      const data = hostBytes(made, "write");
      if (data) return { data, finish: () => made, drop: () => made.dispose() };
      made.dispose();
      isShared = false;
    }
    const { data } = plainPlace(one);
    // The host reads counters at once, which no device with memory of its own need let it do.
    const device = data.byteLength <= 8 && isCounterName(name) ? "js" : undefined;
    return { data, finish: () => toTensor(name, dtype, one.box.size, data, device) };
  };
}

/** What is there already, read into straight where the device lets us. */
export function placeInto(one: SelectedBox, target: Tensor | PlainTensor): Place {
  if (!isTensor(target)) {
    const { buffer, byteOffset, byteLength } = target.data;
    const data = new Uint8Array(buffer, byteOffset, byteLength);
    return { data, finish: () => ({ ...plainTensor(one, data), ...target, data }) };
  }
  // Its memory is nobody else's while bytes are on their way, even if its owner disposes it meanwhile.
  const held = target.detach();
  const data = hostBytes(held, "read");
  // Overwritten when its bytes are there, or some of them: what was computed meanwhile, or follows it, must notice.
  const drop = () => {
    if (data) hostBytes(held, "write");
    held.dispose();
  };
  const finish = () => {
    drop();
    return target;
  };
  if (data) return { data, finish, drop };
  drop();
  return placeByCopy(one, target);
}

/** The same, held beside it until it is finished. */
export function placeByCopy(one: SelectedBox, target: Tensor | PlainTensor): Place {
  const { data } = plainPlace(one);
  const finish = () => {
    if (!isTensor(target)) {
      const place = placeInto(one, target);
      place.data.set(data);
      return place.finish();
    }
    const source = toTensor(one.tensor.name, one.tensor.dtype, one.box.size, data);
    target.set(source);
    source.dispose();
    return target;
  };
  return { data, finish };
}

/** What is loaded must fit what is there. @throws OptError BAD_SHAPE, BAD_DTYPE, UNSUPPORTED for what tensors cannot hold, DISPOSED */
export function checkInto({ tensor, box }: SelectedBox, target: Tensor | PlainTensor): void {
  const where = `tensor ${JSON.stringify(tensor.name)}`;
  check(
    `${target.shape}` === `${box.size}`,
    "BAD_SHAPE",
    where,
    () => `the checkpoint gives [${box.size}], into has [${target.shape}].`,
    "Use the right model.",
  );
  const dtype = storedDType(target.dtype, where);
  const advice = `Ask for the conversion: { dtype: { ${JSON.stringify(tensor.name)}: "${target.dtype}" } }.`;
  check(
    dtype === tensor.dtype,
    "BAD_DTYPE",
    where,
    () => `the checkpoint gives ${tensor.dtype}, into has ${dtype}.`,
    advice,
  );
  if (isTensor(target)) {
    heldDType(tensor.name, dtype);
    hostBytes(target, "read"); // rejects one that was disposed
  } else {
    const { byteLength } = target.data;
    check(
      byteLength === byteLengthOf({ tensor, box }),
      "BAD_SHAPE",
      where,
      () => `data has ${byteLength} bytes for ${dtype} [${box.size}].`,
      "Fix its length.",
    );
  }
}

function plainTensor({ tensor, box }: SelectedBox, data: Uint8Array): LoadedPlainTensor {
  const { dtype, role, follows, shape: wholeShape } = tensor;
  const roles = { ...(role ? { role } : {}), ...(follows === undefined ? {} : { follows }) };
  return { dtype, shape: box.size, data, offset: box.offset, wholeShape, ...roles };
}

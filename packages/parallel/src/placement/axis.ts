/** A communicator as the axis of placements: what looks across divided tensors gathers their parts by it. */
import { type AxisPart, type AxisWhole, empty, type MeshAxis, noGrad, type Tensor, tidy } from "@opt/core";
import { byteSize, inEachRun } from "@opt/core/backend";
import type { Communicator } from "../communicator/communicator";
import { others } from "../communicator/group";
import { partsOf } from "../communicator/parts";
import { bytesNow, overwrite, receiveBuffer } from "../communicator/staging";
import type { Move } from "../engine/engine";

const WHERE = "placement";

const known = new WeakMap<Communicator, MeshAxis<Tensor>>();

/** The axis of a communicator, always the same one. */
export function axisOf(communicator: Communicator): MeshAxis<Tensor> {
  const found = known.get(communicator) ?? new CommunicatorAxis(communicator);
  known.set(communicator, found);
  return found;
}

class CommunicatorAxis implements MeshAxis<Tensor> {
  readonly name: string;
  readonly size: number;
  readonly index: number;

  constructor(private readonly communicator: Communicator) {
    this.name = communicator.name;
    this.size = communicator.size;
    this.index = communicator.rank;
  }

  gather(parts: readonly AxisPart<Tensor>[]): (Tensor | null)[] {
    if (this.size === 1) return parts.map(({ tensor }) => tensor.detach());
    const comesTo = (rank: number, { owner = rank }: AxisPart<Tensor>) => owner === rank;
    const mine = parts.filter((part) => comesTo(this.index, part));
    return noGrad(() =>
      tidy(() => {
        const wholes = mine.map(({ tensor: { shape, dtype, device }, dim, length }) =>
          empty(shape.toSpliced(dim, 1, length), { dtype, device }),
        );
        const tensors = parts.map(({ tensor }) => tensor);
        inEachRun([...tensors, ...wholes], (...present) => {
          const own = present.splice(0, tensors.length).map((tensor) => bytesNow(WHERE, tensor));
          const rooms = present.map((whole) => receiveBuffer(whole));
          const slots = present.map((whole, i) => this.#slotsOf(whole, mine[i]!));
          const received = this.#exchange(
            `gathering of ${parts.length} tensors`,
            this.#ranks((rank) => own.filter((_, i) => comesTo(rank, parts[i]!))),
            this.#ranks((rank) => slots.map((each) => each[rank]!.bytes)),
          );
          for (const [rank, list] of received.entries())
            for (const [i, bytes] of list.entries()) put(bytes, rooms[i]!.bytes, slots[i]![rank]!);
          for (const room of rooms) room.done();
        });
        let next = 0;
        return parts.map((part) => (comesTo(this.index, part) ? wholes[next++]! : null));
      }),
    );
  }

  scatter(wholes: readonly AxisWhole<Tensor>[]): Tensor[] {
    if (this.size === 1) return wholes.map(({ tensor }) => tensor!.detach());
    const owned = wholes.filter(({ owner }) => owner === this.index);
    return noGrad(() =>
      tidy(() => {
        const parts = wholes.map(({ like: { shape, dtype, device } }) => empty(shape, { dtype, device }));
        inEachRun([...owned.map(({ tensor }) => tensor!), ...parts], (...present) => {
          const cut = present.splice(0, owned.length).map((whole, i) => {
            const bytes = bytesNow(WHERE, whole);
            return this.#slotsOf(whole, owned[i]!).map((slot) => taken(bytes, slot));
          });
          const from = (rank: number) => present.filter((_, i) => wholes[i]!.owner === rank);
          const received = this.#exchange(
            `scattering of ${wholes.length} tensors`,
            this.#ranks((rank) => cut.map((each) => each[rank]!)),
            this.#ranks((rank) => from(rank).map(({ size, dtype }) => size * byteSize(dtype))),
          );
          for (const [rank, list] of received.entries())
            for (const [i, part] of from(rank).entries()) overwrite(part, list[i]!);
        });
        return parts;
      }),
    );
  }

  #ranks<Item>(make: (rank: number) => Item): Item[] {
    return Array.from({ length: this.size }, (_, rank) => make(rank));
  }

  /** Where each rank's part of a whole lies in its bytes. */
  #slotsOf({ shape, dtype }: Tensor, { dim, multiple }: Pick<AxisPart<Tensor>, "dim" | "multiple">): Slot[] {
    const product = (extents: readonly number[]) => extents.reduce((a, b) => a * b, 1);
    const count = product(shape.slice(0, dim));
    const width = product(shape.slice(dim + 1)) * byteSize(dtype);
    const stride = shape[dim]! * width;
    return partsOf(shape[dim]!, this.size, multiple).map(({ begin, end }) => {
      const length = (end - begin) * width;
      return { begin: begin * width, length, stride, count, bytes: count * length };
    });
  }

  /** To each rank its bytes, and from each as many as are said. What a rank has for itself comes back. */
  #exchange(
    what: string,
    outgoing: readonly (readonly Uint8Array[])[],
    incoming: readonly (readonly number[])[],
  ): Uint8Array[][] {
    const { group } = this.communicator;
    const received = incoming.map((lengths) => new Uint8Array(lengths.reduce((a, b) => a + b, 0)));
    const moves: { kind: Move["kind"]; rank: number; phase: number; bytes: Uint8Array }[] = [];
    for (const rank of others(group)) {
      const bytes = joinedBytes(outgoing[rank]!);
      if (bytes.length > 0) moves.push({ kind: "send", rank, phase: 0, bytes });
      if (received[rank]!.length > 0) moves.push({ kind: "receive", rank, phase: 0, bytes: received[rank]! });
    }
    received[group.rank]!.set(joinedBytes(outgoing[group.rank]!));
    group.beginNow(WHERE, { what }).now(moves);
    return received.map((bytes, rank) => {
      let begin = 0;
      return incoming[rank]!.map((length) => {
        begin += length;
        return bytes.subarray(begin - length, begin);
      });
    });
  }
}

/** A part of a whole: `count` runs of `length` bytes, of which the first begins at `begin`. */
interface Slot {
  readonly begin: number;
  readonly length: number;
  readonly stride: number;
  readonly count: number;
  /** Of the part. */
  readonly bytes: number;
}

function put(part: Uint8Array, whole: Uint8Array, { begin, length, stride, count }: Slot): void {
  for (let i = 0; i < count; i++) whole.set(part.subarray(i * length, (i + 1) * length), begin + i * stride);
}

function taken(whole: Uint8Array, { begin, length, stride, count, bytes }: Slot): Uint8Array {
  if (count === 1) return whole.subarray(begin, begin + length);
  const part = new Uint8Array(bytes);
  for (let i = 0; i < count; i++) {
    const at = begin + i * stride;
    part.set(whole.subarray(at, at + length), i * length);
  }
  return part;
}

function joinedBytes(list: readonly Uint8Array[]): Uint8Array {
  if (list.length === 1) return list[0]!;
  const all = new Uint8Array(list.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const bytes of list) {
    all.set(bytes, at);
    at += bytes.length;
  }
  return all;
}

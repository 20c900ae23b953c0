/** A communicator as the axis of placements: what looks across divided tensors gathers their parts by it. */
import {
  type AxisPart,
  type AxisWhole,
  concat,
  type MeshAxis,
  noGrad,
  type Tensor,
  tensorFromBytes,
  tidy,
} from "@opt/core";
import { byteSize } from "@opt/core/backend";
import type { Communicator } from "../communicator/communicator";
import { others } from "../communicator/group";
import { partsOf } from "../communicator/parts";
import { bytesNow } from "../communicator/staging";
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

  max(values: Float64Array): void {
    if (this.size === 1) return;
    const own = bytesOfNumbers(values.slice());
    const received = this.#exchange("largest numbers", Array(this.size).fill(own), Array(this.size).fill(own.length));
    const all = received.map(({ buffer }) => new Float64Array(buffer));
    values.forEach((_, i) => {
      values[i] = Math.max(...all.map((each) => each[i]!));
    });
  }

  gather(parts: readonly AxisPart<Tensor>[]): (Tensor | null)[] {
    if (this.size === 1) return parts.map(({ tensor }) => tensor.detach());
    const own = parts.map(({ tensor }) => bytesNow(WHERE, tensor));
    const comesTo = (rank: number, { owner = rank }: AxisPart<Tensor>) => owner === rank;
    const shapes = parts.map(({ tensor, dim, length }) =>
      partsOf(length, this.size).map(({ begin, end }) => tensor.shape.toSpliced(dim, 1, end - begin)),
    );
    const mine = parts.map((part) => comesTo(this.index, part));
    const received = this.#exchange(
      `gathering of ${parts.length} tensors`,
      this.#ranks((rank) => joinedBytes(own.filter((_, i) => comesTo(rank, parts[i]!)))),
      this.#ranks((rank) =>
        total(parts.flatMap(({ tensor }, i) => (mine[i] ? bytesIn(shapes[i]![rank]!, tensor) : []))),
      ),
    );
    const cursors = this.#ranks(() => 0);
    return parts.map(({ tensor, dim }, i) => {
      if (!mine[i]) return null;
      const { dtype, device } = tensor;
      return noGrad(() =>
        tidy(() => {
          const pieces = this.#ranks((rank) => {
            const begin = cursors[rank]!;
            cursors[rank] = begin + bytesIn(shapes[i]![rank]!, tensor);
            return tensorFromBytes(received[rank]!.subarray(begin, cursors[rank]), shapes[i]![rank]!, {
              dtype,
              device,
            });
          });
          return concat(pieces, dim);
        }),
      );
    });
  }

  scatter(wholes: readonly AxisWhole<Tensor>[]): Tensor[] {
    if (this.size === 1) return wholes.map(({ tensor }) => tensor!.detach());
    const outgoing = this.#ranks((): Uint8Array[] => []);
    for (const { tensor, dim, owner } of wholes) {
      if (owner !== this.index) continue;
      noGrad(() =>
        tidy(() => {
          for (const [rank, { begin, end }] of partsOf(tensor!.shape[dim]!, this.size).entries())
            outgoing[rank]!.push(bytesNow(WHERE, tensor!.slice(begin, end, dim)).slice());
        }),
      );
    }
    const incoming = this.#ranks((rank) =>
      total(wholes.flatMap(({ like, owner }) => (owner === rank ? bytesIn(like.shape, like) : []))),
    );
    const received = this.#exchange(`scattering of ${wholes.length} tensors`, outgoing.map(joinedBytes), incoming);
    const cursors = this.#ranks(() => 0);
    return wholes.map(({ like, owner }) => {
      const begin = cursors[owner]!;
      cursors[owner] = begin + bytesIn(like.shape, like);
      const { shape, dtype, device } = like;
      return tensorFromBytes(received[owner]!.subarray(begin, cursors[owner]), shape, { dtype, device });
    });
  }

  #ranks<Item>(make: (rank: number) => Item): Item[] {
    return Array.from({ length: this.size }, (_, rank) => make(rank));
  }

  /** To each rank its bytes, and from each as many as are said. What a rank has for itself comes back. */
  #exchange(what: string, outgoing: readonly Uint8Array[], incoming: readonly number[]): Uint8Array[] {
    const { group } = this.communicator;
    const received = incoming.map((length) => new Uint8Array(length));
    const moves: { kind: Move["kind"]; rank: number; phase: number; bytes: Uint8Array }[] = [];
    for (const rank of others(group)) {
      if (outgoing[rank]!.length > 0) moves.push({ kind: "send", rank, phase: 0, bytes: outgoing[rank]! });
      if (received[rank]!.length > 0) moves.push({ kind: "receive", rank, phase: 0, bytes: received[rank]! });
    }
    received[group.rank]!.set(outgoing[group.rank]!);
    group.beginNow(WHERE, { what }).now(moves);
    return received;
  }
}

const bytesOfNumbers = (values: Float64Array) => new Uint8Array(values.buffer, values.byteOffset, values.byteLength);

const total = (lengths: readonly number[]) => lengths.reduce((a, b) => a + b, 0);

const bytesIn = (shape: readonly number[], { dtype }: Tensor) => shape.reduce((a, b) => a * b, byteSize(dtype));

function joinedBytes(list: readonly Uint8Array[]): Uint8Array {
  const all = new Uint8Array(total(list.map(({ length }) => length)));
  let at = 0;
  for (const bytes of list) {
    all.set(bytes, at);
    at += bytes.length;
  }
  return all;
}

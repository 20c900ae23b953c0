/** What ranks of a tensor-parallel layer say to each other in the middle of a forward or backward, and the gradients of that. */
import { concat, empty, noGrad, type Tensor, tensorFromBytes, tidy, withGradient } from "@opt/core";
import { byteSize, inEachRun } from "@opt/core/backend";
import type { Communicator } from "../communicator/communicator";
import { others } from "../communicator/group";
import { headingOf } from "../communicator/heading";
import { partsOf } from "../communicator/parts";
import { sampleOf } from "../communicator/sample";
import { bytesNow, overwrite, receiveBuffer } from "../communicator/staging";

/** The same tensor; its gradients, of which each rank has a part, are added. */
export function shared(where: string, x: Tensor, communicator: Communicator): Tensor {
  if (communicator.size === 1) return x;
  inEachRun([x], (x) => communicator.group.note(`input of ${where} ${x.dtype} [${x.shape}] ${sampleOf([x], 0)}`));
  if (!x.requiresGrad) return x;
  return withGradient(x.detach(), [x], (gradient) => [added(where, gradient, communicator)]);
}

/** The sum over the ranks, in their order; each has the whole gradient. */
export function added(where: string, x: Tensor, communicator: Communicator): Tensor {
  if (communicator.size === 1) return x;
  return withGradient(sumNow(where, x, communicator), [x], (gradient) => [shared(where, gradient, communicator)]);
}

/** Last axes of all ranks, one behind the other; each has its part of the gradient. */
export function joined(where: string, x: Tensor, extents: readonly number[], communicator: Communicator): Tensor {
  if (communicator.size === 1) return x;
  const begin = extents.slice(0, communicator.rank).reduce((a, b) => a + b, 0);
  const end = begin + extents[communicator.rank]!;
  return withGradient(joinNow(where, x, extents, communicator), [x], (gradient) => [gradient.slice(begin, end, -1)]);
}

function sumNow(where: string, x: Tensor, { group }: Communicator): Tensor {
  const sum = empty(x.shape, { dtype: x.dtype, device: x.device });
  inEachRun([x, sum], (x, sum) => {
    const operation = group.beginNow(where, headingOf(`sum of ${where}`, x));
    const { dtype, device, size } = x;
    const width = byteSize(dtype);
    const parts = partsOf(size, group.size).map(({ begin, end }) => ({ begin: begin * width, end: end * width }));
    const mine = parts[group.rank]!;
    const length = mine.end - mine.begin;
    const own = bytesNow(where, x);
    const received = parts.map(() => new Uint8Array(length));
    received[group.rank]!.set(own.subarray(mine.begin, mine.end));
    operation.now(
      others(group).flatMap((rank) => [
        { kind: "send" as const, rank, phase: 0, bytes: own.subarray(parts[rank]!.begin, parts[rank]!.end) },
        { kind: "receive" as const, rank, phase: 0, bytes: received[rank]! },
      ]),
    );
    const part = noGrad(() =>
      tidy(() => {
        const contributions = received.map((bytes) => tensorFromBytes(bytes, [length / width], { dtype, device }));
        return bytesNow(
          where,
          contributions.reduce((a, b) => a.add(b)),
        ).slice();
      }),
    );
    const whole = new Uint8Array(size * width);
    whole.set(part, mine.begin);
    operation.now(
      others(group).flatMap((rank) => [
        { kind: "send" as const, rank, phase: 1, bytes: part },
        { kind: "receive" as const, rank, phase: 1, bytes: whole.subarray(parts[rank]!.begin, parts[rank]!.end) },
      ]),
    );
    overwrite(sum, whole);
  });
  return sum;
}

function joinNow(where: string, x: Tensor, extents: readonly number[], { group }: Communicator): Tensor {
  const { dtype, device } = x;
  const outer = x.shape.slice(0, -1);
  const heading = { what: `gathering of ${where}`, dtype, shape: `[${[...outer, "*"]}] in [${extents}]` };
  return noGrad(() =>
    tidy(() => {
      const pieces = extents.map((extent) => empty([...outer, extent], { dtype, device }));
      inEachRun([x, ...pieces], (x, ...pieces) => {
        const own = bytesNow(where, x);
        const rooms = pieces.map((piece) => receiveBuffer(piece));
        rooms[group.rank]!.bytes.set(own);
        group.beginNow(where, heading).now(
          others(group).flatMap((rank) => [
            { kind: "send" as const, rank, phase: 0, bytes: own },
            { kind: "receive" as const, rank, phase: 0, bytes: rooms[rank]!.bytes },
          ]),
        );
        for (const room of rooms) room.done();
      });
      return concat(pieces, -1);
    }),
  );
}

/** The rows of all ranks, of which each may have another number. */
import type { Tensor } from "@opt/core";
import { byteSize } from "@opt/core/backend";
import { type Group, others } from "./group";
import type { Operation } from "./operation";
import { bytesOf, movedIn, receiveBuffer, roomLike } from "./staging";

const COUNTS = 0;
const ROWS = 1;

export async function allGather(group: Group, where: string, x: Tensor): Promise<Tensor> {
  const [own, ...row] = x.shape as [number, ...number[]];
  const heading = { what: where, dtype: x.dtype, shape: `[*${row.map((extent) => `,${extent}`).join("")}]` };
  const operation = group.begin(where, heading);
  const bytes = await bytesOf(x);
  const counts = await countsOf(group, operation, own);
  const result = roomLike(x, [counts.reduce((a, b) => a + b, 0), ...row]);
  const incoming = receiveBuffer(result);
  const width = row.reduce((a, b) => a * b, byteSize(x.dtype));
  const begin = (rank: number) => counts.slice(0, rank).reduce((a, b) => a + b, 0) * width;
  const places = counts.map((_, rank) => incoming.bytes.subarray(begin(rank), begin(rank + 1)));
  places[group.rank]!.set(bytes);
  const rows = operation.all(
    others(group).flatMap((rank) => [
      ...(bytes.byteLength > 0 ? [operation.send(rank, ROWS, bytes)] : []),
      ...(places[rank]!.byteLength > 0 ? [operation.receive(rank, ROWS, places[rank]!)] : []),
    ]),
  );
  await movedIn([result, x], rows);
  incoming.done();
  return result;
}

async function countsOf(group: Group, operation: Operation, own: number): Promise<number[]> {
  const counts = Array.from({ length: group.size }, (_, rank) => Float64Array.of(rank === group.rank ? own : 0));
  const bytes = counts.map(({ buffer }) => new Uint8Array(buffer));
  await operation.all(
    others(group).flatMap((rank) => [
      operation.send(rank, COUNTS, bytes[group.rank]!),
      operation.receive(rank, COUNTS, bytes[rank]!),
    ]),
  );
  return counts.map(([count]) => count!);
}

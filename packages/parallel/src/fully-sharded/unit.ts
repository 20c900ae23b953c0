/** Parameters that are gathered together, and whose gradients are reduced together: those of one module. */
import {
  type DType,
  empty,
  evict,
  fillAgain,
  isEvicted,
  keep,
  noGrad,
  reduceInto,
  span,
  type Tensor,
  tidy,
  versionOf,
} from "@opt/core";
import { byteSize } from "@opt/core/backend";
import type { Communicator } from "../communicator/communicator";
import { others } from "../communicator/group";
import type { Heading } from "../communicator/heading";
import { type Part, partsOf } from "../communicator/parts";
import { bytesNow, receiveBuffer, roomLike } from "../communicator/staging";
import type { NamedParameter } from "../data-parallel/parameters";
import type { Move } from "../engine/engine";
import { cut } from "../placement/cut";

const WHERE = "FullyShardedDataParallel";
const ALIKE = "In each step all ranks use the same modules, in the same order.";

/** A parameter and this rank's part of it. */
export interface Shard {
  readonly name: string;
  /** The model's: it has memory while its module computes. */
  readonly whole: Tensor;
  /** What the optimizer trains: some rows, or the whole where there are fewer rows than ranks. */
  readonly part: Tensor;
  /** Of the whole, by rank, in elements. */
  readonly ranges: readonly Part[];
  readonly isDivided: boolean;
}

type Moves = { kind: Move["kind"]; rank: number; phase: number; bytes: Uint8Array }[];

export class Unit {
  readonly shards: readonly Shard[];
  /** Whose gradients are complete since the last `sync`. */
  readonly ready = new Set<Shard>();
  isReduced = false;
  /** How often the parts had been written when they were gathered last. */
  #gathered = -1;

  /**
   * @param communicator of the ranks that divide parameters
   * @param copies of those that have the same parts
   * @param mayGather throws where no forward or backward is under way
   * @param gathers is told whose weights are gathered, in each run
   */
  constructor(
    readonly name: string,
    private readonly communicator: Communicator,
    private readonly copies: Communicator | undefined,
    parameters: readonly NamedParameter[],
    private readonly mayGather: (shard: Shard) => void,
    private readonly gathers: (shards: readonly Shard[]) => void,
    private readonly reduceDType: DType | undefined,
  ) {
    this.shards = parameters.map(({ name, tensor }) => shardOf(name, tensor, communicator));
  }

  /** Frees the whole parameters, or this one. */
  evict(shards: readonly Shard[] = this.shards): void {
    for (const shard of shards) if (shard.isDivided) evict(shard.whole, () => this.#refill(shard));
  }

  #refill(used: Shard): void {
    this.mayGather(used);
    const missing = this.shards.filter(({ isDivided, whole }) => isDivided && isEvicted(whole));
    const version = this.shards.reduce((sum, { part }) => sum + versionOf(part), 0);
    const wholes = missing.map(({ whole }) => whole);
    const isSame = version === this.#gathered;
    this.#gathered = version;
    const present = missing.map(({ part }) => part);
    const gather = (wholes: readonly Tensor[]) => {
      this.gathers(missing);
      this.#gather("weights", missing, present, wholes);
    };
    fillAgain(wholes, gather, isSame);
  }

  /** Gives other ranks what they gather, and needs nothing itself. */
  give(shards: readonly Shard[]): void {
    const rooms = shards.map(({ whole }) => roomLike(whole, whole.shape));
    const present = shards.map(({ part }) => part);
    this.#gather("weights", shards, present, rooms);
    for (const room of rooms) room.dispose();
  }

  /** The parameters are whole again, and stay so. */
  restore(): void {
    const evicted = this.shards.find(({ whole }) => isEvicted(whole));
    if (evicted) this.#refill(evicted);
  }

  /** Every rank's parts to all others. */
  #gather(what: string, shards: readonly Shard[], parts: readonly Tensor[], wholes: readonly Tensor[]): void {
    const { group } = this.communicator;
    const heading = {
      what: `gathering of ${what} of ${this.name}`,
      shape: `${shards.length} of ${this.shards.length}`,
    };
    const moves: Moves = [];
    const ends = shards.map(({ ranges }, i) => {
      const own = bytesNow(WHERE, parts[i]!);
      const { bytes, done } = receiveBuffer(wholes[i]!);
      const placeOf = (rank: number) => bytesIn(bytes, ranges[rank]!, parts[i]!);
      placeOf(group.rank).set(own);
      for (const rank of others(group))
        moves.push(
          { kind: "send", rank, phase: 0, bytes: own },
          { kind: "receive", rank, phase: 0, bytes: placeOf(rank) },
        );
      return done;
    });
    this.#exchange(heading, moves);
    for (const done of ends) done();
  }

  #exchange(heading: Heading, moves: Moves): void {
    if (this.communicator.size > 1) this.communicator.group.beginNow(WHERE, heading).now(moves);
  }

  /** Each rank gets its parts of the average: added in the order of the ranks, then divided. Whole gradients are freed. */
  reduce(divisor: number): void {
    this.isReduced = true;
    this.evict();
    const { group } = this.communicator;
    const shards = this.shards.filter(({ whole }) => whole.grad !== null);
    const present = this.shards.map(({ whole }) => (whole.grad === null ? 0 : 1)).join("");
    const heading: Heading = {
      what: `gradients of ${this.name}`,
      more: [
        `those of parameters ${present}`,
        ...(divisor === group.size * (this.copies?.size ?? 1) ? [] : [`divisor ${divisor}`]),
      ],
      advice: ALIKE,
    };
    const moves: Moves = [];
    const ends: (() => void)[] = [];
    const all = shards.map(({ whole, ranges }) => {
      const grad = whole.grad!;
      const bytes = bytesNow(WHERE, grad);
      const own = ranges[group.rank]!;
      return ranges.map((range, rank) => {
        if (rank === group.rank) return keep(span(grad, own.begin, own.end));
        const room = roomLike(grad, [own.end - own.begin]);
        const { bytes: into, done } = receiveBuffer(room);
        moves.push(
          { kind: "send", rank, phase: 0, bytes: bytesIn(bytes, range, grad) },
          { kind: "receive", rank, phase: 0, bytes: into },
        );
        ends.push(done);
        return room;
      });
    });
    this.#exchange(heading, moves);
    for (const done of ends) done();
    const sum = (by: number, before?: readonly Tensor[]) =>
      shards.map(({ part }, i) => added(part, before ? [before[i]!, ...all[i]!] : all[i]!, by, this.reduceDType));
    const averages = this.copies ? this.#acrossCopies(this.copies, heading, shards, sum, divisor) : sum(divisor);
    for (const [i, shard] of shards.entries()) take(shard, averages[i]!);
  }

  /** Sums go from group to group, so that ranks are added in their order. The averages of the last group come back. */
  #acrossCopies(
    { group }: Communicator,
    heading: Heading,
    shards: readonly Shard[],
    sum: (divisor: number, before?: readonly Tensor[]) => Tensor[],
    divisor: number,
  ): Tensor[] {
    const operation = group.beginNow(WHERE, heading);
    const last = group.size - 1;
    const receive = (rank: number, phase: number, rooms: readonly Tensor[]) => {
      const buffers = rooms.map(receiveBuffer);
      operation.now(buffers.map(({ bytes }) => ({ kind: "receive", rank, phase, bytes })));
      for (const { done } of buffers) done();
      return rooms;
    };
    const send = (rank: number, phase: number, tensors: readonly Tensor[]): Moves =>
      tensors.map((each) => ({ kind: "send", rank, phase, bytes: bytesNow(WHERE, each) }));
    const roomFor = ({ part: { size, dtype, device } }: Shard) =>
      keep(empty([size], { dtype: this.reduceDType ?? dtype, device }));
    const before = group.rank > 0 ? receive(group.rank - 1, 0, shards.map(roomFor)) : undefined;
    const sums = sum(group.rank === last ? divisor : 1, before);
    if (group.rank === last) operation.now(others(group).flatMap((rank) => send(rank, 1, sums)));
    else {
      operation.now(send(group.rank + 1, 0, sums));
      receive(last, 1, sums);
    }
    return sums;
  }
}

/** The sum of contributions, which are freed. */
function added(part: Tensor, contributions: readonly Tensor[], divisor: number, dtype = part.dtype): Tensor {
  const sum = keep(empty([part.size], { dtype, device: part.device }));
  const alike = () => contributions.map((each) => each.to(dtype));
  noGrad(() => tidy(() => reduceInto(sum, alike(), "add", divisor)));
  for (const each of contributions) each.dispose();
  return sum;
}

/** The part's gradient is the average, which is freed, and the whole gradient too. */
function take({ whole, part }: Shard, average: Tensor): void {
  noGrad(() =>
    tidy(() => {
      const own = average.reshape(part.shape).to(part.dtype);
      if (part === whole) part.grad!.set(own);
      else {
        if (part.grad === null) part.grad = own;
        else part.grad.set(part.grad.add(own));
        whole.grad = null;
      }
      average.dispose();
    }),
  );
}

function shardOf(name: string, whole: Tensor, communicator: Communicator): Shard {
  const [rows = 0] = whole.shape;
  const { size } = communicator;
  const isDivided = size > 1 && rows >= size;
  const row = whole.size / rows;
  const all = { begin: 0, end: whole.size };
  const ranges = partsOf(rows, size).map(({ begin, end }) =>
    isDivided ? { begin: begin * row, end: end * row } : all,
  );
  const part = isDivided ? cut(whole, 0, communicator) : whole;
  part.name = whole.name ?? name;
  return { name, whole, part, ranges, isDivided };
}

function bytesIn(bytes: Uint8Array, { begin, end }: Part, { dtype }: Tensor): Uint8Array {
  return bytes.subarray(begin * byteSize(dtype), end * byteSize(dtype));
}

/** Parameters that are gathered together, and whose gradients are reduced together: those of one module. */
import {
  combine,
  type DType,
  empty,
  evict,
  fillAgain,
  isEvicted,
  keep,
  noGrad,
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
   * @param mayGather throws where no forward or backward is under way
   * @param gathers is told whose weights are gathered, in each run
   */
  constructor(
    readonly name: string,
    private readonly communicator: Communicator,
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
      more: [`those of parameters ${present}`, ...(divisor === group.size ? [] : [`divisor ${divisor}`])],
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
    for (const [i, shard] of shards.entries()) take(shard, all[i]!, divisor, this.reduceDType);
  }
}

/** The part's gradient: the average of contributions, which are freed, and so is the whole gradient. */
function take({ whole, part }: Shard, contributions: readonly Tensor[], divisor: number, dtype = part.dtype): void {
  noGrad(() =>
    tidy(() => {
      const sum = empty([part.size], { dtype, device: part.device });
      combine(
        sum,
        contributions.map((each) => each.to(dtype)),
        "add",
        divisor,
      );
      const average = sum.reshape(part.shape).to(part.dtype);
      for (const each of contributions) each.dispose();
      if (part === whole) {
        part.grad!.set(average);
        return;
      }
      if (part.grad === null) part.grad = average;
      else part.grad.set(part.grad.add(average));
      whole.grad = null;
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

/** What a program says to the other ranks: tensors and small plain values, over whichever engine carries them. */
import type { Communicator as CheckpointCommunicator } from "@opt/checkpoint";
import { check, show, Tensor } from "@opt/core";
import type { Reduction } from "../engine/engine";
import { above, type NamedTensors, type Placing, type Replica, type Replicable } from "./above";
import { allGather } from "./all-gather";
import { Group } from "./group";
import { headingOf } from "./heading";
import { allGatherJson, broadcastJson, checkPlain, gatherJson, treeOf } from "./messages";
import type { Operation } from "./operation";
import { allReduce, checkReduction, reduceScatter } from "./reduce";
import { bytesOf, checkDense, movedIn, receiveBuffer } from "./staging";
import type { Traffic } from "./world";

/**
 * Ranks of a job, as `connect` and `split` return them. Collectives are called by all of them, in the same order; several may be under
 * way at once. Tensors are overwritten in place, as PyTorch's collectives do, on any device. Rejections name the rank that is meant.
 * It is a `communicator` of `saveCheckpoint`, too.
 */
export class Communicator implements CheckpointCommunicator {
  readonly rank: number;
  readonly size: number;
  /** "world", and what `split` and `mesh` call theirs. */
  readonly name: string;
  /** Messages and bytes that this rank sent through this communicator. */
  readonly traffic: Readonly<Traffic>;
  /** @internal */
  readonly group: Group;
  #aside: Communicator | undefined;

  /** @internal Use `connect`. */
  constructor(group: Group) {
    this.group = group;
    this.rank = group.rank;
    this.size = group.size;
    this.name = group.name;
    this.traffic = group.traffic;
  }

  /** Returns when every rank has come here. @throws OptError IO, MISSING, DISPOSED */
  async barrier(): Promise<void> {
    await this.#disseminate("barrier", false);
  }

  /** Whether it is true on one rank at least. All ranks come to the same, by one small message or a few. @throws OptError IO, MISSING, DISPOSED */
  any(value: boolean): Promise<boolean> {
    return this.#disseminate("any", value);
  }

  async #disseminate(what: string, value: boolean): Promise<boolean> {
    const operation = this.group.begin(what, { what });
    const received = new Uint8Array(1);
    let known = value;
    // After round k each rank knows of 2^k others.
    for (let distance = 1; distance < this.size; distance *= 2) {
      const to = (this.rank + distance) % this.size;
      const from = (this.rank - distance + this.size) % this.size;
      await operation.all([operation.send(to, 0, Uint8Array.of(Number(known))), operation.receive(from, 0, received)]);
      known ||= received[0] === 1;
    }
    return known;
  }

  /** `new DataParallel(model, this)` with its defaults, for loops that do not import this package, such as `fit`. @throws OptError as it does */
  replicate(model: Replicable): Replica {
    return above.replicate!(model, this as never);
  }

  /**
   * Who saves these tensors together where the ranks of this communicator have other samples each, and which of them has which part: for
   * `saveCheckpoint` and `loadCheckpoint`. All ranks of a mesh, where this is an axis of one.
   *
   * @throws OptError BAD_ARGUMENT for tensors that are divided over ranks with other samples, or that are no part of the mesh
   */
  placing(tensors: NamedTensors): Placing<Communicator> {
    return above.placing!(this as never, tensors) as Placing<Communicator>;
  }

  /**
   * Every rank gets the root's tensor, in place, or its value (plain JSON; the others pass undefined).
   *
   * @throws OptError BAD_SHAPE if the tensors differ in size; BAD_ARGUMENT, also for values that JSON does not keep (NaN, a Map); IO,
   * MISSING, DISPOSED
   */
  async broadcast<T>(value: T | undefined, root = 0): Promise<T> {
    const where = "broadcast";
    this.group.checkRank(where, "the root", root);
    const what = (kind: string) => `broadcast of a ${kind} from rank ${root}`;
    if (!(value instanceof Tensor)) {
      checkPlain(where, value);
      return broadcastJson(this.group, this.group.begin(where, { what: what("value") }), value, root);
    }
    checkDense(where, value);
    const operation = this.group.begin(where, headingOf(what("tensor"), value));
    const { from, to } = treeOf(this.group, root);
    if (from !== undefined) await receiveTensor(operation, from, value);
    const bytes = to.length > 0 && value.size > 0 ? await bytesOf(value) : undefined;
    await operation.all(bytes ? to.map((child) => operation.send(child, 0, bytes)) : []);
    return value;
  }

  /**
   * x = the sum (mean: of x / size; min, max) over all ranks, in place: added in the order of the ranks, so that the bits are the
   * same on all of them, whatever the engine.
   *
   * @throws OptError BAD_ARGUMENT, BAD_DTYPE, BAD_SHAPE if sizes differ, IO, MISSING, DISPOSED
   */
  async allReduce(x: Tensor, reduction: Reduction = "sum"): Promise<Tensor> {
    checkDense("allReduce", x);
    checkReduction("allReduce", x, reduction);
    await allReduce(this.group, "allReduce", [x], reduction, headingOf(`allReduce "${reduction}"`, x));
    return x;
  }

  /** A new tensor: this rank's rows of the reduction, whose n rows are divided as evenly as can be, larger parts first. @throws OptError as `allReduce` */
  async reduceScatter(x: Tensor, reduction: Reduction = "sum"): Promise<Tensor> {
    const where = "reduceScatter";
    checkDense(where, x);
    checkReduction(where, x, reduction);
    checkRows(where, x);
    return reduceScatter(this.group, where, x, reduction);
  }

  /** A new tensor: the rows of all ranks, in their order; each may have another number of them. @throws OptError as `allReduce` */
  async allGather(x: Tensor): Promise<Tensor> {
    const where = "allGather";
    checkDense(where, x);
    checkRows(where, x);
    return allGather(this.group, where, x);
  }

  /** Sends a tensor to one rank, which receives it by `recv`. Resolves when `x` may be changed again. @throws OptError BAD_ARGUMENT, IO, MISSING, DISPOSED */
  async send(x: Tensor, to: number): Promise<void> {
    checkDense("send", x);
    this.#checkOther("send", to);
    const operation = this.group.pairwise("send", headingOf("a message", x), { to: [to], from: [] });
    await operation.all(x.size > 0 ? [operation.send(to, 0, await bytesOf(x))] : []);
  }

  /** x = the next tensor that `from` sends to this rank, in place. @throws OptError BAD_SHAPE if sizes differ; BAD_ARGUMENT, IO, MISSING, DISPOSED */
  async recv(x: Tensor, from: number): Promise<Tensor> {
    checkDense("recv", x);
    this.#checkOther("recv", from);
    const operation = this.group.pairwise("recv", headingOf("a message", x), { to: [], from: [from] });
    await receiveTensor(operation, from, x);
    await operation.all([]);
    return x;
  }

  /** Rank 0 gets every rank's value (plain JSON), in the order of the ranks; the others get undefined. @throws OptError BAD_ARGUMENT for what JSON does not keep (NaN, a Map); IO, MISSING, DISPOSED */
  async gather<T>(value: T, ...more: readonly never[]): Promise<T[] | undefined> {
    checkPlain("gather", value);
    check(
      more.length === 0,
      "BAD_ARGUMENT",
      "gather",
      () => `takes a value alone, got ${show(more[0])} after it.`,
      "Rank 0 gets all; broadcast() hands them on.",
    );
    return gatherJson(this.group, this.group.begin("gather", { what: "gather" }), value);
  }

  /**
   * Communicators of the ranks that name the same color (a whole number from 0 on), in the order of their ranks here.
   *
   * @throws OptError BAD_ARGUMENT, IO, MISSING, DISPOSED; UNSUPPORTED past 2,048 of them
   * @example
   * const communicator = await connect();
   * const half = await communicator.split(communicator.rank % 2);
   */
  async split(color: number, ...more: readonly never[]): Promise<Communicator> {
    const where = "split";
    check(
      more.length === 0,
      "BAD_ARGUMENT",
      where,
      () => `takes a color alone, got ${show(more[0])} after it.`,
      "Ranks keep their order.",
    );
    const isColor = Number.isSafeInteger(color) && color >= 0;
    check(isColor, "BAD_ARGUMENT", where, () => `the color must be a whole number from 0 on, got ${String(color)}.`);
    const { world, members, name } = this.group;
    const all = await allGatherJson(this.group, where, { color, next: world.nextGroup });
    const number = Math.max(...all.map(({ next }) => next));
    world.nextGroup = number + 1;
    const mine = members.filter((_, rank) => all[rank]!.color === color);
    return new Communicator(new Group(world, `${name}/${color}`, mine, number));
  }

  /**
   * The same ranks over a channel of their own, always the same one: what `async` saves say there does not mix with what the program says
   * meanwhile. The next collective here compares that all ranks asked for it: one that does not save is named.
   */
  aside(): Communicator {
    this.group.note("an async save");
    this.#aside ??= new Communicator(this.group.aside());
    return this.#aside;
  }

  /** Lets what was sent leave. That of `connect` ends this process's part in the job: the program's last line. */
  async close(): Promise<void> {
    const { world, name } = this.group;
    this.group.close();
    if (name !== WORLD || world.isClosed) return;
    world.isClosed = true;
    await world.engine.close();
  }

  #checkOther(where: string, rank: number): void {
    this.group.checkRank(where, "the other rank", rank);
    check(rank !== this.rank, "BAD_ARGUMENT", where, () => `a rank does not talk to itself, got its own, ${rank}.`);
  }
}

/** The name of the communicator of all ranks. */
export const WORLD = "world";

async function receiveTensor(operation: Operation, from: number, x: Tensor): Promise<void> {
  if (x.size === 0) return;
  const { bytes, done } = receiveBuffer(x);
  await movedIn([x], operation.receive(from, 0, bytes));
  done();
}

function checkRows(where: string, x: Tensor): void {
  check(
    x.shape.length > 0,
    "BAD_SHAPE",
    where,
    () => "a tensor without axes has no rows, got shape [].",
    "Use reshape([1]).",
  );
}

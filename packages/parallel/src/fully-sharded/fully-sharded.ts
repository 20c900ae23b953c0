/** ZeRO-3: parameters, gradients and optimizer state of each module are divided over the ranks, and whole only while it computes. */
import type { Layout } from "@opt/checkpoint";
import { check, checkOptions, noGrad, onGradient, show, type Tensor, zeros } from "@opt/core";
import { isTaping } from "@opt/core/backend";
import { Module, type ParametersOptions } from "@opt/nn";
import type { NamedTensors, Placing } from "../communicator/above";
import { Communicator } from "../communicator/communicator";
import { checkReadsNow } from "../communicator/staging";
import { agree, type Groups, optionsLine } from "../data-parallel/agreement";
import { Buffers } from "../data-parallel/buffers";
import { averagedBy, checkAveraged, linesOf, type NamedParameter, tensorsOf } from "../data-parallel/parameters";
import { Silence } from "../data-parallel/silence";
import { meshFor, neighboursOf } from "../mesh/neighbours";
import { placing } from "../mesh/placing";
import { axisOf } from "../placement/axis";
import { layoutOfTensors } from "../placement/layout";
import { type Shard, Unit } from "./unit";
import { chosenUnits, parametersByUnit, unitsOf } from "./units";

const WHERE = "FullyShardedDataParallel";

export interface FullyShardedDataParallelOptions {
  /**
   * Modules whose parameters are gathered together, or classes of such. Default: the children of the model, and those of
   * `Sequential`, `ModuleList` and `ModuleDict` in their place.
   */
  readonly units?: readonly (Module | (abstract new (...args: never[]) => Module))[];
  /** As `DataParallel`'s. Default true. */
  readonly broadcastBuffers?: boolean;
  /** Weights stay whole from a forward to its backward: half as much travels, for the memory of the whole model. Default false. */
  readonly keepGathered?: boolean;
  /** In which dtype gradients are added; they travel in their own. "f32" for 16-bit ones. Default: their own. */
  readonly reduceDType?: "f32" | "f64";
  /**
   * Parts are divided over groups of so many neighbouring ranks, as those of one machine, and each group has all of them (HSDP). Weights
   * travel within a group, and of gradients a rank's part alone leaves it. Default: all ranks.
   */
  readonly shardOver?: number;
}

/**
 * Divides a model over the ranks (ZeRO stage 3, PyTorch's `fully_shard`). Each rank keeps 1 / W of the rows of each parameter, of its
 * gradient and of the optimizer's state. A module's parameters are gathered before its forward and backward, and freed after them.
 * Gradients are averaged as by `DataParallel`: W ranks equal one process bit for bit.
 *
 * Make the optimizer of `namedParameters()`, this rank's parts, and clip their gradients by `clipGradNorm`. Parameters with fewer rows
 * than ranks stay whole on each rank. All ranks use the same modules in each step.
 *
 * @example
 * const communicator = await connect();
 * const parallel = new FullyShardedDataParallel(new Linear(4, 3), communicator);
 * const optimizer = new AdamW(parallel.namedParameters());
 * crossEntropy(parallel.forward(x), y).backward();
 * await parallel.sync();
 * optimizer.step();
 * optimizer.zeroGrad();
 */
export class FullyShardedDataParallel<Model extends Module> {
  readonly module: Model;
  readonly communicator: Communicator;
  /** As `DataParallel`'s. */
  divisor: number;
  /** Rejects with BAD_STATE where ranks differ in names, shapes, dtypes, the order or the values of parameters, or in options. `sync` waits for it. */
  readonly ready: Promise<void>;
  readonly #units: readonly Unit[];
  /** Those that gather and reduce. */
  readonly #talking: readonly Communicator[];
  readonly #buffers: Buffers;
  readonly #names: readonly string[];
  /** What required no gradient at first. */
  readonly #frozen: readonly NamedParameter[];
  readonly #removers: (() => void)[] = [];
  /** A forward or backward may gather. */
  #isOpen = false;
  /** As after `sync`, all ranks begin the next forward without whole weights. */
  readonly #silence = new Silence(() => {
    for (const unit of this.#units) unit.evict();
  });
  #step = 0;
  /** What `recorded` has seen so far, and what it saw in its last batch. */
  #noted: Exchange[] | undefined;
  #exchanges: readonly Exchange[] = [];
  /** Groups of optimizers that have stepped since the last `sync`. */
  readonly #stepped = new Set<Groups>();

  /** @throws OptError BAD_ARGUMENT; BAD_STATE if another one averages the model; DEVICE_MISMATCH if parameters lie on several devices; DUPLICATE; NOT_SYNC on webgpu; UNSUPPORTED for complex ones */
  constructor(module: Model, communicator: Communicator, options: FullyShardedDataParallelOptions = {}) {
    checkOptions(WHERE, options, {
      units: "array",
      broadcastBuffers: "boolean",
      keepGathered: "boolean",
      reduceDType: "string",
      shardOver: "number",
    });
    check(module instanceof Module, "BAD_ARGUMENT", WHERE, () => `needs a module, got ${show(module)}.`);
    const isOurs = communicator instanceof Communicator;
    check(isOurs, "BAD_ARGUMENT", WHERE, () => `needs a communicator, got ${show(communicator)}.`, "await connect()");
    const { broadcastBuffers = true, keepGathered = false, reduceDType } = options;
    const isKnown = reduceDType === undefined || reduceDType === "f32" || reduceDType === "f64";
    check(isKnown, "BAD_ARGUMENT", WHERE, () => `reduceDType must be "f32" or "f64", got ${show(reduceDType)}.`);
    const { size } = communicator;
    const { shardOver = size } = options;
    check(
      Number.isSafeInteger(shardOver) && shardOver > 0 && size % shardOver === 0,
      "BAD_ARGUMENT",
      WHERE,
      () => `shardOver must divide the ${size} ranks, got ${show(shardOver)}.`,
      "The ranks of one machine: { shardOver: 8 }.",
    );
    const units = options.units === undefined ? unitsOf(module) : chosenUnits(WHERE, module, options.units);
    const { trainable, frozen, buffers: all } = tensorsOf(WHERE, module);
    const buffers = broadcastBuffers ? all : [];
    this.#frozen = [...frozen, ...all];
    this.module = module;
    this.communicator = communicator;
    this.divisor = communicator.size;
    this.#buffers = new Buffers(buffers);
    this.#names = trainable.map(({ name }) => name);
    const isAlone = communicator.size === 1;
    if (!isAlone) for (const { tensor } of trainable) checkReadsNow(WHERE, tensor);
    const settings = `broadcastBuffers ${broadcastBuffers}, keepGathered ${keepGathered}, reduceDType ${reduceDType}, shardOver ${shardOver}`;
    const lines = isAlone ? [] : linesOf([...trainable, ...frozen, ...buffers], settings);
    const agreed = isAlone ? Promise.resolve() : agree(communicator.group, WHERE, lines, true);
    this.ready = agreed.then(() => {});
    this.ready.catch(() => {}); // sync() throws it
    const { near, copies } =
      shardOver === size ? { near: communicator, copies: undefined } : neighboursOf(communicator, shardOver);
    this.#talking = copies ? [near, copies] : [near];
    this.#units = parametersByUnit(module, units, trainable).map(([unit, name, list]) => {
      const made: Unit = new Unit(
        name,
        near,
        copies,
        list,
        (shard) => this.#checkOpen(shard),
        (shards) => void this.#noted?.push({ unit: made, shards }),
        reduceDType,
      );
      for (const shard of made.shards) this.#take(made, shard);
      if (!isAlone)
        this.#removers.push(
          unit.onForward(() => {
            if (!keepGathered || !isTaping()) made.evict();
          }),
        );
      return made;
    });
    for (const unit of this.#units) unit.evict();
  }

  #take(unit: Unit, shard: Shard): void {
    const { name, whole, part, isDivided } = shard;
    averagedBy.set(whole, this);
    part.averagedOver = axisOf(this.communicator);
    if (this.communicator.size === 1) return;
    this.#removers.push(onGradient(whole, () => this.#reached(unit, shard)));
    part.checkSteps = (groups, isStep = false) => {
      if (isStep) this.#noteOptions(groups);
    };
    if (!isDivided) return;
    partOf.set(whole, part);
    whole.checkSteps = () => {
      check(
        whole.grad !== null, // one that accumulates in noSync
        "BAD_STATE",
        WHERE,
        () => `${name} is divided over the ranks, and has no gradient of its own.`,
        "Use parallel.namedParameters() in place of the model's.",
      );
    };
  }

  /** The next gathering compares the options of each optimizer that stepped. */
  #noteOptions(groups: Groups): void {
    if (this.#stepped.has(groups)) return;
    this.#stepped.add(groups);
    for (const { group } of this.#talking) group.note(`step ${this.#step} with ${optionsLine(groups)}`);
  }

  /** The model's. */
  forward(...inputs: Parameters<Model["forward"]>): ReturnType<Model["forward"]> {
    const wasOpen = this.#isOpen;
    this.#isOpen = true;
    const output = this.module.forward(...(inputs as never[])) as ReturnType<Model["forward"]>;
    if (isTaping()) return output;
    this.#isOpen = wasOpen; // no backward follows
    for (const unit of this.#units) unit.evict(); // also what was used outside of its module
    return output;
  }

  /** This rank's parts under the parameters' names: what optimizers, averages and schedules take. Frozen ones are whole. */
  namedParameters(options: ParametersOptions = {}): [string, Tensor][] {
    const parts = this.#parts();
    return this.module.namedParameters(options).map(([name, whole]) => [name, parts.get(whole) ?? whole]);
  }

  /** The same without names. */
  parameters(options: ParametersOptions = {}): Tensor[] {
    return this.namedParameters(options).map(([, part]) => part);
  }

  /** Runs `body`, which may be async: gradients of further micro-batches accumulate, whole on each rank; the backward after it averages their sums. See `DataParallel`. @throws OptError BAD_ARGUMENT */
  noSync<Result>(body: () => Result): Result {
    return this.#silence.during(body);
  }

  /** Runs a forward and backward, and notes what ranks exchange in them, for `shadow`. */
  recorded<Result>(body: () => Result): Result {
    this.#noted = [];
    try {
      const result = body();
      this.#exchanges = this.#noted;
      return result;
    } finally {
      this.#noted = undefined;
    }
  }

  /**
   * Takes part in the forward and backward of the other ranks, where this one has no samples: with gradients of 0. All ranks do what this
   * one did in its last `recorded`.
   *
   * @throws OptError BAD_STATE before a first `recorded`
   */
  shadow(): void {
    const isKnown = this.communicator.size === 1 || this.#exchanges.length > 0;
    const problem = () => "shadow() needs a batch that came before it, got none.";
    check(isKnown, "BAD_STATE", WHERE, problem, "Call recorded() with the forward and backward of one.");
    for (const exchange of this.#exchanges) {
      if ("shards" in exchange) exchange.unit.give(exchange.shards);
      else {
        const { whole } = exchange.shard;
        whole.grad ??= zeros(whole.shape, { dtype: whole.dtype, device: whole.device });
        this.#reached(exchange.unit, exchange.shard);
      }
    }
  }

  /**
   * Ends a step: between backward and the optimizer's step, once on every rank. Afterwards each part has its `grad`.
   *
   * @throws OptError BAD_STATE if ranks differ, see `ready`, or used other parameters; UNSUPPORTED if the engine cannot wait in a
   * backward; IO, MISSING, DISPOSED
   */
  async sync(): Promise<void> {
    const { group, size } = this.communicator;
    if (size === 1) return;
    try {
      for (const unit of this.#units) if (!unit.isReduced) unit.reduce(this.divisor);
      const what = `sync of step ${this.#step + 1}`;
      const shared = this.#buffers.list.length > 0 ? [this.#buffers.share(group, WHERE, what)] : [];
      await Promise.all([this.ready, ...shared]);
      checkAveraged(WHERE, this.#frozen, this);
    } finally {
      for (const unit of this.#units) {
        unit.evict();
        unit.ready.clear();
        unit.isReduced = false;
      }
      this.#isOpen = false;
      this.#stepped.clear();
      this.#step++;
    }
  }

  /** The same with the model's buffers. */
  namedTensors(): [string, Tensor][] {
    const parts = this.#parts();
    return this.module.namedTensors().map(([name, x]) => [name, parts.get(x) ?? x]);
  }

  /** Parts and buffers by name, for `saveCheckpoint` with `layout`. */
  stateDict(): Record<string, Tensor> {
    return Object.fromEntries(this.namedTensors().map(([name, x]) => [name, x.detach()]));
  }

  /**
   * Takes what `stateDict` gives, also among others: what `loadCheckpoint(path, { layout, rank })` read. @throws OptError BAD_STATE for what
   * is missing or has another shape. Nothing has changed then
   *
   * @param options `strict: false` leaves what the state lacks as it is
   */
  loadStateDict(
    state: Readonly<Record<string, Tensor | undefined>>,
    options: { readonly strict?: boolean } = {},
  ): void {
    checkOptions(WHERE, options, { strict: "boolean" });
    const { strict = true } = options;
    const own = this.namedTensors().filter(([name]) => strict || state[name] !== undefined);
    for (const [name, { shape }] of own) {
      const given = state[name];
      check(
        `${given?.shape}` === `${shape}`,
        "BAD_STATE",
        WHERE,
        () => `${name} must have shape [${shape}] on this rank, got ${given && `[${given.shape}]`}.`,
        "loadCheckpoint(path, { layout, rank })",
      );
    }
    noGrad(() => {
      for (const [name, x] of own) x.set(state[name]!);
    });
  }

  /** Who saves tensors together, and how they are divided. See `Communicator`. @throws OptError BAD_ARGUMENT */
  placing(tensors: NamedTensors): Placing<Communicator> {
    return placing(this.communicator, tensors, true);
  }

  /** For `saveCheckpoint` and `loadCheckpoint`: which rows each rank has. On a mesh of several axes: `layoutOf`. */
  get layout(): Layout {
    const tensors = this.namedTensors();
    const { mesh, names } = meshFor([["rank", this.communicator]], tensors);
    return layoutOfTensors(mesh, tensors, (axis, name) => {
      const found = names.get(axis);
      check(found, "BAD_STATE", WHERE, () => `${name} is divided over other ranks, too.`, "layoutOf(model, mesh)");
      return found;
    });
  }

  /** Makes the model whole again on every rank, and leaves it alone from now on. */
  dispose(): void {
    for (const remove of this.#removers.splice(0)) remove();
    this.#isOpen = true;
    for (const unit of this.#units) unit.restore();
    for (const { whole, part } of this.#shards()) {
      partOf.delete(whole);
      delete part.averagedOver;
      delete whole.checkSteps;
      if (averagedBy.get(whole) === this) averagedBy.delete(whole);
    }
  }

  #parts(): Map<Tensor, Tensor> {
    return new Map(this.#shards().map(({ whole, part }) => [whole, part]));
  }

  #shards(): Shard[] {
    const byName = new Map(this.#units.flatMap(({ shards }) => shards.map((shard) => [shard.name, shard] as const)));
    return this.#names.map((name) => byName.get(name)!);
  }

  #checkOpen({ name }: Shard): void {
    check(
      this.#isOpen,
      "BAD_STATE",
      WHERE,
      () => `${name} is divided over the ranks, and whole only in parallel.forward() and backward.`,
      "Read this rank's part: parallel.namedParameters() or parallel.stateDict().",
    );
  }

  #reached(unit: Unit, shard: Shard): void {
    this.#noted?.push({ unit, shard });
    check(
      !unit.ready.has(shard) && !unit.isReduced,
      "BAD_STATE",
      WHERE,
      () => `backward reached ${shard.name} a second time before sync().`,
      "Await sync() after each backward; put those whose gradients accumulate into noSync, before the last.",
    );
    unit.evict([shard]);
    if (this.#silence.isOn) return;
    unit.ready.add(shard);
    if (unit.ready.size === unit.shards.length) unit.reduce(this.divisor);
  }
}

/** Weights that are gathered, or a gradient that is complete. */
type Exchange =
  | { readonly unit: Unit; readonly shards: readonly Shard[] }
  | { readonly unit: Unit; readonly shard: Shard };

const partOf = new WeakMap<Tensor, Tensor>();

/** This rank's part of a model's tensor that `FullyShardedDataParallel` divides; others themselves. */
export const partOfWhole = (whole: Tensor): Tensor => partOf.get(whole) ?? whole;

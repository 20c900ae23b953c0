/** ZeRO-1: each rank keeps the state of its range of the parameters, steps it, and the ranks gather what they stepped. */
import type { AnnotatedTensor, PartialTensor } from "@opt/checkpoint";
import {
  type Around,
  algorithmOf,
  BaseOptimizer,
  type BaseOptions,
  check,
  checkValue,
  type DType,
  empty,
  type Group,
  type GroupOptions,
  keep,
  type MeshAxis,
  OptError,
  type OptimizerClass,
  type OptimizerInput,
  type OptimizerState,
  type ParameterStateDict,
  RowSparse,
  ruleHashes,
  show,
  span,
  Tensor,
  versionOf,
  type Wrappable,
} from "@opt/core";
import { byteSize, copiesIn, isStaged, wholesOf } from "@opt/core/backend";
import { Communicator } from "../communicator/communicator";
import { digest } from "../communicator/digest";
import { others } from "../communicator/group";
import type { Heading } from "../communicator/heading";
import { allGatherJson } from "../communicator/messages";
import type { Operation } from "../communicator/operation";
import { sampleOf } from "../communicator/sample";
import { bytesOf, overwrite } from "../communicator/staging";
import { agree, optionsLine } from "../data-parallel/agreement";
import { axisOf } from "../placement/axis";
import { filled } from "./boxes";
import { byElements, byOwners, type Division } from "./division";
import type { Range } from "./ranges";

const WHERE = "ShardedOptimizer";
const EXAMPLE = "new ShardedOptimizer(AdamW, params, { lr: 0.01 }, communicator)";
const ALIKE = "All ranks step with the same options, and with the same gradients: those of DataParallel after sync().";

/** A parameter and its parts. */
interface ShardedParameter {
  readonly name: string;
  readonly tensor: Tensor;
  /** By rank. */
  readonly ranges: readonly Range[];
  /** This rank's part, which the optimizer trains. */
  readonly piece: Tensor;
}

/** LBFGS: its state is vectors of all parameters, which it divides itself, and its steps call closures. */
export interface ClosureOptimizer {
  divideOver(axis: MeshAxis<Tensor>): void;
  step<Loss extends Tensor | number>(closure: () => Loss | Promise<Loss>): Promise<Loss>;
  stateDict(): { readonly groups: OptimizerState["groups"]; readonly state: Record<string, object> };
}

/** The class of a `ClosureOptimizer`. */
export type ClosureOptimizerClass<Options extends BaseOptions> = new (
  params: OptimizerInput<Options>,
  options?: Partial<Options>,
) => ClosureOptimizer;

/** Makes an optimizer of these parameters, perhaps wrapped or combined: of whole ones, and of this rank's parts. */
export type OptimizerMaker<Options extends BaseOptions> = (params: [string, Tensor][]) => Wrappable<Group<Options>>;

/** What to save of this rank: spread both members into the contents of `saveCheckpoint`. */
export interface ShardedContents {
  readonly tensors: Record<string, PartialTensor | AnnotatedTensor>;
  readonly values: { readonly [key: string]: unknown };
}

/**
 * An optimizer whose state is divided over the ranks (ZeRO stage 1, PyTorch's `ZeroRedundancyOptimizer`). Each group's parameters lie in
 * a flat list, of which every rank owns an equal range: it keeps state for that alone, steps it, and the ranks gather the parameters. Muon,
 * SOAP, Prodigy and modifications such as `cautious` need whole parameters, so each of theirs has one owner. LBFGS divides its vectors; `step` takes its closure, which
 * computes the rank's loss and the gradients that are the same on all ranks. Parameters and state have the bits of the unsharded optimizer: gradients are those of `DataParallel` after `sync`.
 *
 * In the place of a class it takes a function that makes an optimizer, perhaps wrapped or combined: it is called with the parameters, and
 * with this rank's. Each parameter then has one owner.
 *
 * `groups` has the options (a schedule may change `lr` there, alike on all ranks); its parameters are this rank's parts.
 *
 * @example
 * const communicator = await connect();
 * const sharded = new ShardedOptimizer(AdamW, model.namedParameters(), { lr: 0.01 }, communicator);
 * crossEntropy(model.forward(x), y).backward();
 * await sharded.step();
 * sharded.zeroGrad();
 */
export class ShardedOptimizer<Options extends BaseOptions> {
  readonly groups: readonly Group<Options>[];
  readonly communicator: Communicator;
  /** Rejects with BAD_STATE where ranks differ in parameters, options or rules. `step` waits for it. */
  readonly ready: Promise<void>;
  /** Trains nothing: it checks what is given, knows the groups, and clears gradients. */
  readonly #whole: Wrappable<Group<Options>>;
  /** Trains this rank's parts. */
  readonly #own: Wrappable<Group<Options>>;
  readonly #parameters: readonly ShardedParameter[];
  readonly #division: Division;
  /** `#own` and `#whole`, if they are one. */
  readonly #closures: ClosureOptimizer | null;
  /** Whether every rank's memory can be looked at in each step. */
  readonly #areReadable: Promise<boolean>;
  #isReadable = false;
  #steps = 0;
  /** How many of them there were when state began anew. */
  #freshAt = 0;
  #isStepping = false;

  /**
   * @param optimizer a class, or a function that makes an optimizer of parameters: then `options` are empty
   * @throws OptError as the optimizer's class does
   */
  constructor(
    optimizer: OptimizerClass<Options> | ClosureOptimizerClass<Options> | OptimizerMaker<Options>,
    params: OptimizerInput<Options>,
    options: Partial<Options> & GroupOptions,
    communicator: Communicator,
  ) {
    const isMoved = communicator === undefined && (options as unknown) instanceof Communicator;
    check(!isMoved, "BAD_ARGUMENT", WHERE, () => "the options come before the communicator, got none.", EXAMPLE);
    const isOurs = communicator instanceof Communicator;
    check(isOurs, "BAD_ARGUMENT", WHERE, () => `needs a communicator, got ${show(communicator)}.`, "await connect()");
    this.communicator = communicator;
    const dividesItself = "divideOver" in (Object(optimizer).prototype ?? {});
    const items = isMaker(optimizer) ? [...(params as Iterable<Tensor | [string, Tensor]>)] : [];
    if (isMaker(optimizer)) this.#whole = checkMade(optimizer(items as [string, Tensor][]), options);
    else {
      if (!dividesItself) algorithmOf(WHERE, optimizer as OptimizerClass<Options>);
      this.#whole = new (optimizer as OptimizerClass<Options>)(params, options);
    }
    this.#division = isMaker(optimizer) || this.#whole.needsWholes ? byOwners : byElements;
    const { size, rank } = communicator;
    const wholeGroups: readonly Group<Options>[] = this.#whole.groups;
    const sharded = wholeGroups.map((group) => {
      const ranges = this.#division.ranges(group.params, size);
      return group.params.map((tensor, i) => {
        if (dividesItself) return { name: group.names[i]!, tensor, ranges: ranges[i]!, piece: tensor };
        const piece = this.#division.part(tensor, ranges[i]![rank]!);
        piece.requiresGrad = true;
        piece.spanOf = tensor;
        if (this.#division === byOwners) piece.steppedBy = { axis: axisOf(communicator), index: ownerIn(ranges[i]!) };
        return { name: group.names[i]!, tensor, ranges: ranges[i]!, piece };
      });
    });
    this.#parameters = sharded.flat();
    this.#closures = dividesItself ? (this.#whole as unknown as ClosureOptimizer) : null;
    this.#closures?.divideOver(axisOf(communicator));
    if (dividesItself) this.#own = this.#whole;
    else if (isMaker(optimizer)) this.#own = this.#madeOfPieces(optimizer, items);
    else {
      const groups = wholeGroups.map(({ params: _, names: __, ...group }, g) => ({
        ...(group as unknown as Partial<Options>),
        params: sharded[g]!.map(({ name, piece }) => [name, piece] as [string, Tensor]),
      }));
      this.#own = new (optimizer as OptimizerClass<Options>)(groups as OptimizerInput<Options>);
    }
    this.groups = this.#own.groups;
    const isReadable = sampleOf(this.#tensors(), 0) !== undefined;
    this.#areReadable =
      size === 1 ? Promise.resolve(false) : agree(communicator.group, WHERE, this.#lines(), isReadable);
    this.ready = this.#areReadable.then(() => {});
    this.ready.catch(() => {}); // step() throws it
  }

  /** Parameters must be in the same groups as whole ones, whatever shapes this rank has of them. @throws OptError BAD_ARGUMENT */
  #madeOfPieces(make: OptimizerMaker<Options>, items: readonly (Tensor | [string, Tensor])[]) {
    const byTensor = new Map(this.#parameters.map((each) => [each.tensor, each]));
    const made = make(
      items.flatMap((item): [string, Tensor][] => {
        const known = byTensor.get(Array.isArray(item) ? item[1] : item);
        return known === undefined ? [] : [[known.name, known.piece]];
      }),
    );
    const namesIn = ({ groups }: { readonly groups: readonly Group<Options>[] }) =>
      JSON.stringify(groups.map(({ names }) => names));
    check(
      namesIn(made) === namesIn(this.#whole),
      "BAD_ARGUMENT",
      WHERE,
      () => "parameters must come into groups by their names and numbers of dimensions, got other groups of parts.",
      "A rank has no rows of most parameters.",
    );
    return made;
  }

  /**
   * One update of every parameter that has a gradient, which must be the same on all ranks. Resolves when all have all parameters.
   *
   * @throws OptError as the optimizer's `step`; BAD_STATE if ranks differ, see `ready`, or an earlier step has not ended; CHANGED for
   * gradients that were changed
   * meanwhile; UNSUPPORTED for row-sparse gradients and in compiled functions; IO, MISSING, DISPOSED; what the optimizer of any rank throws
   */
  step(): Promise<void>;
  /**
   * A step of LBFGS.
   *
   * @param closure as its own `step` takes it: it computes the loss and gradients that are the same on all ranks
   * @throws OptError as LBFGS's `step` and as the other one
   */
  step<Loss extends Tensor | number>(closure: () => Loss | Promise<Loss>): Promise<Loss>;
  async step(closure?: () => Tensor): Promise<unknown> {
    const closures = this.#closures;
    if (closures !== null) return this.#alone("step", () => this.#stepBy(closures, closure!));
    const isNone = closure === undefined;
    check(isNone, "BAD_ARGUMENT", WHERE, () => "step() of this optimizer takes no closure.", "await step()");
    return this.apply();
  }

  /** @internal A step around which a scaler divides gradients. */
  async apply(around?: Around): Promise<void> {
    const problem = () => "a scaled step is one, and LBFGS calls its closure several times.";
    check(this.#closures === null, "UNSUPPORTED", WHERE, problem, "Train in float32 without a GradScaler.");
    await this.#alone("step", () => this.#step(around));
  }

  /** Gradients are read, and parameters written, until `body` ends. @throws OptError BAD_STATE while another one runs */
  async #alone<Result>(method: string, body: () => Promise<Result>): Promise<Result> {
    this.#checkIdle(method);
    this.#isStepping = true;
    try {
      return await body();
    } finally {
      this.#isStepping = false;
    }
  }

  /** @internal What a scaler looks at. */
  get wholes(): readonly Tensor[] {
    return this.#tensors();
  }

  /** @internal It has no hooks. */
  get looksBefore(): boolean {
    return false;
  }

  async #stepBy(optimizer: ClosureOptimizer, closure: () => Tensor): Promise<Tensor> {
    const operation = this.communicator.group.begin(WHERE, this.#heading());
    this.#isReadable = await this.#areReadable;
    await operation.all([]); // nothing has changed yet
    this.#steps++;
    return optimizer.step(closure);
  }

  async #step(around?: Around): Promise<void> {
    const { group } = this.communicator;
    const operation = group.begin(WHERE, this.#heading());
    const areAveraged = this.#steps === 0 && group.size > 1 ? this.#agreeOnGradients() : undefined;
    check(
      this.#division === byOwners || !this.groups.some(isStaged),
      "UNSUPPORTED",
      WHERE,
      () => "cautious, mars, hyperball and centralize need whole parameters, and were set after it had divided them.",
      "Give them to the constructor.",
    );
    this.#checkDense();
    const compared = this.#tensors().map(({ grad }) => [grad, grad === null ? 0 : versionOf(grad)] as const);
    this.#isReadable = await this.#areReadable;
    await operation.all([]); // nothing has changed yet
    await areAveraged;
    for (const [i, [gradient, version]] of compared.entries()) {
      const { name, tensor } = this.#parameters[i]!;
      const isSame = tensor.grad === gradient && (gradient === null || versionOf(gradient) === version);
      check(
        isSame,
        "CHANGED",
        WHERE,
        () => `the gradient of ${name} was changed while a step is under way.`,
        "Its steps take time: await step().",
      );
    }
    const what = `step ${++this.#steps}`;
    await this.#shared(operation, what, () =>
      this.#withGradients(() => {
        if (around === undefined) this.#own.step();
        else this.#own.apply(around);
      }),
    );
  }

  /** Runs `body` while this rank's parts have their parts of the gradients. */
  #withGradients(body: () => void): void {
    try {
      for (const { tensor, ranges, piece } of this.#parameters) {
        const range = ranges[this.communicator.rank]!;
        const isOwn = tensor.grad !== null && (this.#division === byElements || lengthOf(range) > 0);
        piece.grad = isOwn ? this.#division.part(tensor.grad!, range) : null;
      }
      body();
    } finally {
      for (const { piece } of this.#parameters) piece.grad = null;
    }
  }

  /**
   * Averages estimates of the Hessian's diagonal, which are the gradients, into each rank's part of it: `updateHessian` of `Sophia`. All
   * ranks call it, with the same gradients.
   *
   * @throws OptError UNSUPPORTED for an optimizer without it, and for row-sparse gradients; BAD_STATE before an earlier step has ended; further as it
   */
  updateHessian(options: { readonly batchSize?: number | null } = {}): void {
    const own: Wrappable<Group<Options>> & { updateHessian?(given: typeof options): void } = this.#own;
    this.#checkIdle("updateHessian");
    check(
      own.updateHessian !== undefined,
      "UNSUPPORTED",
      WHERE,
      () => `${own.constructor.name} has no updateHessian().`,
      "Sophia has one.",
    );
    this.#checkDense();
    this.#withGradients(() => own.updateHessian!(options));
  }

  /** @throws OptError UNSUPPORTED */
  #checkDense(): void {
    for (const { name, tensor } of this.#parameters) {
      check(
        !(tensor.grad instanceof RowSparse),
        "UNSUPPORTED",
        WHERE,
        () => `the gradient of ${name} is row-sparse, which is not divided.`,
        "Make its layer with sparse: false.",
      );
    }
  }

  /** Before the first step it is not known yet whose memory can be looked at: all of each gradient is compared. */
  #agreeOnGradients(): Promise<unknown> {
    const { what, advice } = this.#heading();
    const lines = this.#parameters.map(async ({ name, tensor: { grad } }) => {
      if (grad === null || grad instanceof RowSparse) return `${name} no dense gradient`;
      return `${name} gradient ${digest(await bytesOf(grad))}`;
    });
    const agreed = agree(this.communicator.group, WHERE, Promise.all(lines), true, { what, advice: advice ?? ALIKE });
    agreed.catch(() => {}); // the step throws it, or what failed before it
    return agreed;
  }

  /** Clears the gradients of all parameters, as the optimizer does. @throws OptError BAD_STATE before an earlier step has ended */
  zeroGrad(options: { setToNull?: boolean } = {}): void {
    if (this.#closures === null) this.#checkIdle("zeroGrad");
    this.#whole.zeroGrad(options);
  }

  /** The whole state, on every rank: what the unsharded optimizer would return, in memory of its own. All ranks call it. @throws OptError IO, MISSING, DISPOSED */
  async stateDict(): Promise<OptimizerState> {
    const own = this.#ownState();
    if (this.#closures !== null) return { groups: own.groups, state: wholeVectors(own.state) as typeof own.state };
    const all = await this.#describedState(own);
    const gathered = this.#parameters.flatMap(({ name, tensor, ranges }) =>
      Object.entries(all[name] ?? {}).map(async ([key, value]) => {
        if (typeof value === "number") return [name, key, value] as const;
        if (this.#division === byOwners)
          return [name, key, await this.#fromOwner(own.state[name]?.[key], tensor, ranges, value)] as const;
        const flat = await this.communicator.allGather(own.state[name]![key] as Tensor);
        const whole = keep(flat.reshape(tensor.shape));
        flat.dispose();
        return [name, key, whole] as const;
      }),
    );
    const state: Record<string, ParameterStateDict> = {};
    for (const [name, key, value] of await Promise.all(gathered)) {
      state[name] ??= {} as ParameterStateDict;
      state[name][key] = value;
    }
    return { groups: own.groups, state };
  }

  /** Of whole parameters that of its own: wrappers keep tensors of the others, too, which have no elements. */
  #ownState(): OptimizerState {
    const { groups, state } = this.#own.stateDict();
    if (this.#closures !== null || this.#division === byElements) return { groups, state };
    const { rank } = this.communicator;
    const others = new Set(this.#parameters.flatMap(({ name, ranges }) => (ownerIn(ranges) === rank ? [] : [name])));
    return { groups, state: Object.fromEntries(Object.entries(state).filter(([name]) => !others.has(name))) };
  }

  /** What state there is: numbers, and shapes and dtypes of tensors. Of whole parameters it is that of their owners. */
  async #describedState({ state }: OptimizerState): Promise<Record<string, Record<string, number | StateShape>>> {
    const own = Object.entries(state).map(([name, entry]) => {
      const described = Object.entries(entry).map(([key, value]) => {
        return [key, typeof value === "number" ? value : { shape: value.shape, dtype: value.dtype }] as const;
      });
      return [name, Object.fromEntries(described)] as const;
    });
    if (this.#division === byElements) return Object.fromEntries(own);
    const all = await allGatherJson(this.communicator.group, "stateDict", Object.fromEntries(own));
    return Object.assign({}, ...all);
  }

  /** A tensor of state, which every rank gets from the parameter's owner. */
  #fromOwner(
    own: Tensor | number | undefined,
    { device }: Tensor,
    ranges: readonly Range[],
    { shape, dtype }: StateShape,
  ): Promise<Tensor> {
    const room = own instanceof Tensor ? own.detach().clone() : empty(shape, { dtype, device });
    return this.communicator.broadcast(keep(room), ownerIn(ranges));
  }

  /**
   * This rank's state for `saveCheckpoint`, as boxes of whole tensors: any number of ranks may load it, and merging gives the
   * unsharded state. `await loadStateDict(optimizerState(await loadCheckpoint(...)))` takes it back.
   *
   * @example
   * const communicator = await connect();
   * const sharded = new ShardedOptimizer(AdamW, model.namedParameters(), {}, communicator);
   * const { tensors, values } = await sharded.contents();
   * const layout = { mesh: { shape: [communicator.size], axes: ["rank"] }, tensors: { "*": "replicate" } } as const;
   * await saveCheckpoint("runs/divided", { step: 1, tensors: { ...model.stateDict(), ...tensors }, values }, { communicator, layout });
   */
  async contents(key = "optimizer"): Promise<ShardedContents> {
    const own = this.#ownState();
    if (this.#closures !== null) return (await import("@opt/checkpoint")).optimizerContents(own, key);
    const { groups, state } = own;
    const tensors: Record<string, PartialTensor> = {};
    const counters: Record<string, Record<string, number>> = {};
    for (const [name, entry] of Object.entries(await this.#describedState(own))) {
      const numbers = Object.entries(entry).filter(([, value]) => typeof value === "number");
      counters[name] = Object.fromEntries(numbers) as Record<string, number>;
    }
    for (const { name, tensor, ranges } of this.#parameters) {
      for (const [part, value] of Object.entries(state[name] ?? {})) {
        if (typeof value === "number") continue;
        const { shape, boxes } = this.#division.boxes(value, tensor, ranges[this.communicator.rank]!);
        const { dtype } = value;
        const data = (await bytesOf(value)).slice();
        tensors[`${name}.${part}`] = {
          dtype,
          shape,
          boxes: filled(boxes, data, byteSize(dtype)),
          role: "state",
          follows: name,
        };
      }
    }
    for (const copy of copiesIn(own)) copy.dispose();
    return { tensors, values: { [key]: { groups, counters } } };
  }

  /** Takes over options and whole state, of which each rank keeps its part. @throws OptError BAD_STATE if it does not fit. Nothing has changed then */
  loadStateDict(saved: OptimizerState): void {
    if (this.#closures === null) this.#loadParts(saved);
    else this.#own.loadStateDict(saved);
    this.communicator.group.note(`state loaded into ${WHERE}`);
    this.#freshAt = this.#steps;
  }

  #loadParts(saved: OptimizerState): void {
    // The whole one knows names, shapes and options; it keeps nothing of it.
    this.#whole.loadStateDict(saved);
    const cut: Tensor[] = [];
    try {
      const whole = this.#whole.stateDict();
      const parts = this.#cut(whole.state, cut);
      cut.push(...copiesIn(whole));
      this.#own.loadStateDict({ groups: whole.groups, state: parts });
    } finally {
      for (const tensor of cut) tensor.dispose();
      this.#whole.dispose();
    }
  }

  /** Frees the state. All ranks do, or none. */
  dispose(): void {
    this.#freshAt = this.#steps;
    this.#own.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** Gradients are read, and parameters written, until a step ends. @throws OptError BAD_STATE */
  #checkIdle(method: string): void {
    check(
      !this.#isStepping,
      "BAD_STATE",
      WHERE,
      () => `${method}() came while a step is under way.`,
      "Its steps take time: await step().",
    );
  }

  /** This rank's parts of a whole state. @param cut takes what is to be disposed */
  #cut(state: OptimizerState["state"], cut: Tensor[]): OptimizerState["state"] {
    const parts: OptimizerState["state"] = {};
    for (const { name, ranges } of this.#parameters) {
      const range = ranges[this.communicator.rank]!;
      const entry = state[name];
      if (entry === undefined || (this.#division === byOwners && lengthOf(range) === 0)) continue;
      const part = (value: number | Tensor) => {
        if (typeof value === "number") return value;
        cut.push(this.#division.part(value, range));
        return cut.at(-1)!;
      };
      const entries = Object.entries(entry).map(([key, value]) => [key, part(value)]);
      parts[name] = Object.fromEntries(entries);
    }
    return parts;
  }

  /**
   * Puts the weights to train back after `eval()`, on all ranks, as the optimizer's `train()`.
   *
   * @throws OptError UNSUPPORTED for an optimizer without it; BAD_STATE before an earlier step has ended; IO, MISSING, DISPOSED
   */
  train(): Promise<void> {
    return this.#swap("train");
  }

  /** Puts the weights to evaluate in the parameters' place, on all ranks, as the `eval()` of `ScheduleFreeAdamW`. @throws OptError as `train` */
  eval(): Promise<void> {
    return this.#swap("eval");
  }

  async #swap(mode: "train" | "eval"): Promise<void> {
    const own: Wrappable<Group<Options>> & Partial<Record<typeof mode, () => void>> = this.#own;
    await this.#alone(mode, async () => {
      check(
        own[mode] !== undefined,
        "UNSUPPORTED",
        WHERE,
        () => `${own.constructor.name} has no ${mode}().`,
        "It evaluates the weights that it trains.",
      );
      const { group } = this.communicator;
      const operation = group.begin(WHERE, { what: `${mode}() of ${WHERE}` });
      await operation.all([]); // nothing has changed yet
      await this.#shared(operation, `${mode}()`, () => own[mode]!());
    });
  }

  /** Changes this rank's parts by `body`, and gives them to all others. What one rank throws, all of them do. */
  async #shared(operation: Operation, what: string, body: () => void): Promise<void> {
    const { group } = this.communicator;
    let failure: { readonly error: unknown } | undefined;
    try {
      body();
    } catch (error) {
      failure = { error };
    }
    const hasFailed = group.size > 1 ? await this.#gather(operation, failure !== undefined) : failure !== undefined;
    if (!hasFailed) return;
    const { code = "IO", message } = (failure?.error ?? {}) as Partial<OptError>;
    const all = await allGatherJson(group, WHERE, failure ? { code, message: message ?? String(failure.error) } : null);
    if (failure) throw failure.error;
    const rank = all.findIndex((each) => each !== null);
    const problem = `${what} has failed on rank ${rank}: ${all[rank]!.message}`;
    throw new OptError(all[rank]!.code, WHERE, problem, "Ranks differ now: go on from a checkpoint.");
  }

  /** Each rank's parts, one behind the other, to all others, and whether it has failed. Returns whether one of them has. */
  async #gather(operation: Operation, hasFailed: boolean): Promise<boolean> {
    const { group } = this.communicator;
    const bytesOfRank = (rank: number) =>
      this.#parameters.reduce((sum, { tensor, ranges }) => sum + lengthOf(ranges[rank]!) * byteSize(tensor.dtype), 0);
    const own = new Uint8Array(bytesOfRank(group.rank) + 1);
    let at = 0;
    for (const { piece } of this.#parameters) {
      const bytes = await bytesOf(piece);
      own.set(bytes, at);
      at += bytes.byteLength;
    }
    own[at] = Number(hasFailed);
    const all = others(group).map((rank) => ({ rank, bytes: new Uint8Array(bytesOfRank(rank) + 1) }));
    await operation.all(
      all.flatMap(({ rank, bytes }) => [operation.send(rank, 0, own), this.#take(operation, rank, bytes)]),
    );
    return hasFailed || all.some(({ bytes }) => bytes.at(-1) === 1);
  }

  async #take(operation: Operation, rank: number, bytes: Uint8Array): Promise<void> {
    await operation.receive(rank, 0, bytes);
    let at = 0;
    for (const { tensor, ranges } of this.#parameters) {
      const length = lengthOf(ranges[rank]!) * byteSize(tensor.dtype);
      if (length === 0) continue;
      const part = span(tensor, ranges[rank]!.begin, ranges[rank]!.end);
      overwrite(part, bytes.subarray(at, at + length));
      part.dispose();
      at += length;
    }
  }

  #tensors(): Tensor[] {
    return this.#parameters.map(({ tensor }) => tensor);
  }

  /** What ranks must have alike at each step: of gradients and parameters some elements. */
  #heading(): Heading {
    const tensors = this.#tensors();
    const gradients = tensors.flatMap(({ grad }) => (grad === null || grad instanceof RowSparse ? [] : [grad]));
    const present = digest(Uint8Array.from(tensors, ({ grad }) => (grad === null ? 0 : 1)));
    const sampled = (of: Tensor[]) => (this.#isReadable ? sampleOf(of, this.#steps) : "unread");
    return {
      what: `step ${this.#steps + 1} of ${WHERE}`,
      more: [
        optionsLine(this.#own.groups),
        `state from step ${this.#freshAt + 1} on`,
        `${gradients.length} of ${tensors.length} gradients ${present.slice(8)} ${sampled(gradients)}`,
        `weights ${sampled(tensors)}`,
      ],
      advice: ALIKE,
    };
  }

  /** What ranks must agree on. */
  async #lines(): Promise<string[]> {
    const hashes = ruleHashes(this.#own);
    const groups = this.#own.groups.map(
      ({ params: _, ...options }, g) => `group ${g} ${hashes[g]} ${JSON.stringify(options)}`,
    );
    const parameters = this.#parameters.map(async ({ name, tensor }) => {
      const { dtype, shape } = tensor;
      return `${name} ${dtype} [${shape}] values ${digest(await bytesOf(tensor))}`;
    });
    return [...groups, ...(await Promise.all(parameters))];
  }
}

/** A function that is no class. */
function isMaker<Options extends BaseOptions>(
  optimizer: OptimizerClass<Options> | ClosureOptimizerClass<Options> | OptimizerMaker<Options>,
): optimizer is OptimizerMaker<Options> {
  const isClass = () => /^class\b/.test(Function.prototype.toString.call(optimizer));
  return typeof optimizer === "function" && !("define" in (optimizer.prototype ?? {})) && !isClass();
}

/** @throws OptError BAD_ARGUMENT for what is no optimizer, and for options; UNSUPPORTED for one that calls closures */
function checkMade<Options extends BaseOptions>(
  made: Wrappable<Group<Options>>,
  options: object,
): Wrappable<Group<Options>> {
  const isOptimizer = made instanceof BaseOptimizer && !made.needsClosure;
  checkValue(isOptimizer, WHERE, "the function", "to make an optimizer that steps without a closure", made);
  const given = Object.keys(options);
  const problem = () => `options must be given in the function, got ${given.join(", ")}.`;
  check(
    given.length === 0,
    "BAD_ARGUMENT",
    WHERE,
    problem,
    "(params) => new Lookahead(new AdamW(params, { lr: 0.01 }))",
  );
  return made;
}

const lengthOf = ({ begin, end }: Range) => end - begin;

/** The rank that has a whole parameter. */
const ownerIn = (ranges: readonly Range[]) =>
  Math.max(
    ranges.findIndex((range) => lengthOf(range) > 0),
    0,
  );

/** Vectors in place of this rank's parts of them, in objects and lists of such. All ranks call it. */
function wholeVectors(value: unknown): unknown {
  if (value instanceof Tensor) {
    const [whole] = wholesOf([value], [value.placement]) as [Tensor];
    return keep(whole === value ? value.clone() : whole);
  }
  if (Array.isArray(value)) return value.map(wholeVectors);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, wholeVectors(each)]));
}

interface StateShape {
  readonly shape: readonly number[];
  readonly dtype: DType;
}

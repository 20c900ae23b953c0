/** What a running program has made: its tensors, optimizers and schedules on one device. */
import {
  type CompileOptions,
  type Device,
  type DType,
  ExponentialMovingAverage,
  Generator,
  GradScaler,
  OptError,
  type Optimizer,
  type OptimizerState,
  parameter,
  RowSparse,
  span,
  type Tensor,
  tensor,
} from "@opt/core";
import * as schedules from "@opt/core/schedules";
import { Random } from "../numbers/random";
import { type LayerClasses, type LayerModule, makeLayer } from "./layers";
import { EPSILON, isFloat, numbersOf } from "./numbers";
import type { Argument, Fill, Id, Layer, Program, Spec } from "./program";
import type { AddedGroup, Contents, Store } from "./store";

// biome-ignore lint/suspicious/noExplicitAny: optimizers of any options
type AnyOptimizer = Optimizer<any>;
// biome-ignore lint/suspicious/noExplicitAny: options come from the program
export type OptimizerClasses = Readonly<Record<string, new (params: any, options?: any) => AnyOptimizer>>;

export interface Mode {
  readonly device: Device;
  readonly optimizers: OptimizerClasses;
  readonly layers: LayerClasses;
  /** The dtype that stands for a float one: a device that lacks it, or the reference that has more digits. */
  readonly dtype?: (dtype: DType) => DType;
  /** Every op works on copies of its operands: nothing that is overwritten later can reach it. */
  readonly apart?: boolean;
  /** Bodies are compiled. */
  readonly compile?: CompileOptions;
  /** Saved there before the program's round to resume at, and built anew from it. */
  readonly resumed?: Store;
  /** Where a resumed program goes on; else where it began. */
  readonly onto?: Device;
  /** Moves the numbers of leaves by units in the last place, more for a higher one, to learn how far that goes. */
  readonly jitter?: number;
}

/** Thrown by the runner itself where a result is not what it must be. */
export class WrongResult extends Error {
  constructor(
    readonly what: string,
    message: string,
  ) {
    super(message);
  }
}

interface Schedule {
  step(): void;
  stateDict(): unknown;
  loadStateDict(state: unknown): void;
}

export interface Trainer {
  readonly optimizer: AnyOptimizer;
  readonly schedule: Schedule | null;
}

export class World {
  readonly values = new Map<Id, Tensor>();
  /** Numbers and booleans that the running body was given. */
  plain: Readonly<Record<Id, number | boolean>> = {};
  /** Numbers that the running body finds in variables outside. */
  outside: Readonly<Record<Id, number | boolean>> = {};
  /** What the last round returned. */
  results: ReadonlyMap<Id, Tensor> = new Map();
  readonly trainers = new Map<Id, Trainer>();
  /** Layers by their names, as properties of a module: what compiled functions follow. */
  readonly layers: Record<Id, LayerModule>;
  /** State dicts that `save` made. */
  readonly checkpoints = new Map<Id, OptimizerState>();
  /** Where a rejection came from. */
  at = "leaves";
  readonly generator = new Generator(7);
  readonly #owned: Tensor[] = [];
  readonly #ofRound: Tensor[] = [];
  readonly averages = new Map<Id, ExponentialMovingAverage>();
  readonly scaler: GradScaler | null;
  private readonly groups: AddedGroup[] = [];
  /** Layers in evaluation. */
  private readonly evaluating = new Set<Id>();
  #depth = 0;

  constructor(
    readonly program: Program,
    readonly mode: Mode,
  ) {
    const { Module } = mode.layers;
    this.layers = (program.layers.length > 0 && Module ? new Module() : {}) as unknown as Record<Id, LayerModule>;
    this.scaler = program.scaler && new GradScaler(program.scaler);
  }

  /** Makes the leaves and the optimizers. */
  open(): void {
    const { leaves, layers, optimizers, averages } = this.program;
    const { device } = this.mode;
    this.at = "layers";
    for (const layer of layers) this.layers[layer.id] = this.#layer(layer);
    this.at = "leaves";
    for (const leaf of leaves) {
      const data = this.numbers(leaf.fill, leaf);
      const options = { shape: leaf.shape, dtype: this.dtype(leaf.dtype), device };
      if (leaf.of !== undefined) {
        const weight = memberOf(this.layers[leaf.of.layer], leaf.of.name);
        const source = tensor(data, options);
        weight.set(source);
        source.dispose();
        this.values.set(leaf.id, this.own(weight));
        continue;
      }
      const made =
        leaf.kind === "parameter"
          ? parameter(data, { ...options, name: leaf.id })
          : tensor(data, { ...options, requiresGrad: leaf.kind === "marked" });
      this.values.set(leaf.id, this.own(made));
    }
    this.at = "optimizers";
    for (const { id, kind, options, groups, schedule } of optimizers) {
      const own = groups.map((group) => ({ ...group.options, params: this.#named(group.params) }));
      const optimizer = new this.mode.optimizers[kind]!(own, options);
      this.trainers.set(id, {
        optimizer,
        schedule: schedule && makeSchedule(schedule.kind, optimizer, schedule.options),
      });
    }
    this.at = "averages";
    for (const { id, params, options } of averages) {
      const named = params.map((param): [Id, Tensor] => [param, this.value(param)]);
      this.averages.set(id, new ExponentialMovingAverage(named, options));
    }
  }

  /** As optimizers take them: weights of layers have no name of their own. */
  #named(params: readonly Id[]): Tensor[] | [Id, Tensor][] {
    const hasWeights = this.program.leaves.some(({ id, of }) => of !== undefined && params.includes(id));
    return hasWeights ? params.map((id): [Id, Tensor] => [id, this.value(id)]) : params.map((id) => this.value(id));
  }

  addGroup(group: AddedGroup): void {
    const { optimizer, params, options } = group;
    this.trainer(optimizer).optimizer.addGroup({ ...options, params: this.#named(params) });
    this.groups.push(group);
  }

  train(training: boolean, layers: readonly Id[] = this.program.layers.map(({ id }) => id)): void {
    for (const id of layers) {
      this.layers[id]!.train(training);
      if (training) this.evaluating.delete(id);
      else this.evaluating.add(id);
    }
  }

  /** A layer uses another tensor in place of its own weight. */
  tie(id: Id, name: string, tensor: Tensor): void {
    const layer = this.layers[id] as unknown as Record<string, Tensor>;
    const own = layer[name]!;
    layer[name] = tensor;
    own.dispose();
  }

  #layer(layer: Layer): LayerModule {
    const { device, layers: classes } = this.mode;
    return makeLayer(classes, layer, { dtype: this.dtype(layer.dtype), device, generator: this.generator });
  }

  /** Another layer of the same kind in a layer's place, with other numbers. */
  replace(id: Id, seed: number): void {
    const { layers, leaves } = this.program;
    const fresh = this.#layer(layers.find((layer) => layer.id === id)!);
    fresh.train(!this.evaluating.has(id));
    for (const leaf of leaves) {
      if (leaf.of?.layer !== id) continue;
      const weight = this.own(memberOf(fresh, leaf.of.name));
      const source = tensor(this.numbers({ ...leaf.fill, seed }, leaf), {
        shape: leaf.shape,
        dtype: weight.dtype,
        device: weight.device,
      });
      weight.set(source);
      source.dispose();
      this.values.set(leaf.id, weight);
    }
    this.layers[id] = fresh;
  }

  dtype(dtype: DType): DType {
    return isFloat(dtype) ? (this.mode.dtype?.(dtype) ?? dtype) : dtype;
  }

  numbers(fill: Fill, { shape, dtype }: Spec): Float64Array {
    const numbers = numbersOf(fill, shape);
    const { jitter } = this.mode;
    if (jitter === undefined || !isFloat(dtype)) return numbers;
    const units = 2 ** Math.floor(jitter / 4);
    const random = new Random(jitter * 1000 + numbers.length);
    const drawn = () => 1 + (random.below(3) - 1) * units * EPSILON[dtype];
    if (jitter % 2 === 1) return numbers.map((x) => x * drawn());
    // Many equal numbers are rounded alike by a step, and their sum is off by as many times as much: they move together.
    const drawnFor = new Map<number, number>();
    for (const x of numbers) if (!drawnFor.has(x)) drawnFor.set(x, drawn());
    return numbers.map((x) => x * drawnFor.get(x)!);
  }

  value(id: Id): Tensor {
    const value = this.values.get(id);
    if (value === undefined) throw new WrongResult("is no program", `there is no ${id}`);
    return value;
  }

  /** The tensors that a round passes. */
  passed(args: readonly Id[], given: Readonly<Record<Id, Argument>>): Tensor[] {
    const made = new Map<Id, Tensor>();
    const pass = (id: Id): Tensor => {
      const argument = given[id];
      const isAlias = typeof argument === "object" && "as" in argument;
      const one = made.get(id) ?? (isAlias ? pass(argument.as) : this.#argument(id, argument));
      made.set(id, one);
      return one;
    };
    return args.map(pass);
  }

  /** A leaf, a new tensor, or what the last round returned. */
  #argument(id: Id, given: Exclude<Argument, { readonly as: Id }> | undefined): Tensor {
    if (typeof given !== "object") return this.value(id);
    if ("result" in given) return this.results.get(given.result)!;
    const { dtype, device, shape } = this.value(id);
    const { fill, rows = shape[0], inside } = given;
    const own = rows === undefined ? shape : shape.with(0, rows);
    const data = this.numbers(fill, { shape: own, dtype });
    if (!inside || data.length === 0) return this.made(tensor(data, { shape: own, dtype, device }));
    const all = Float64Array.of(...data.subarray(0, 1), ...data, ...data.subarray(0, 2));
    const larger = this.made(tensor(all, { dtype, device }));
    const part = this.made(span(larger, 1, 1 + data.length));
    return this.made(part.reshape(own));
  }

  trainer(id: Id): Trainer {
    return this.trainers.get(id)!;
  }

  /** Takes over a tensor that no tidy frees: until the program ends. */
  own(made: Tensor): Tensor {
    this.#owned.push(made);
    return made;
  }

  /** Takes over what a statement made, until the round ends, unless a tidy does. */
  made(result: Tensor): Tensor {
    if (this.#depth === 0) this.#ofRound.push(result);
    return result;
  }

  /** Runs a body whose results a tidy takes care of. */
  inTidy<Result>(body: () => Result): Result {
    this.#depth++;
    try {
      return body();
    } finally {
      this.#depth--;
    }
  }

  /** What has been made stays until the program ends. */
  endPrelude(): void {
    this.#owned.push(...this.#ofRound.splice(0));
  }

  endRound(): void {
    const gone = new Set(this.#ofRound.splice(0));
    for (const one of gone) one.dispose();
    for (const [id, value] of this.values) if (gone.has(value)) this.values.delete(id);
  }

  close(): void {
    for (const one of [...this.#ofRound, ...this.#owned, ...this.results.values()]) one.dispose();
    for (const { optimizer } of this.trainers.values()) optimizer.dispose();
    for (const average of this.averages.values()) average.dispose();
    this.scaler?.dispose();
  }

  /** All that another world needs to go on. The tensors are the live ones. */
  saved(): Contents {
    const tensors: Record<Id, Tensor> = {};
    for (const [id, value] of this.values) {
      if (value.isDisposed) continue;
      tensors[id] = value;
      const { grad } = value;
      if (grad !== null) tensors[`gradient.${id}`] = grad instanceof RowSparse ? this.made(grad.toDense()) : grad;
    }
    for (const [id, result] of this.results) if (!result.isDisposed) tensors[`result.${id}`] = result;
    const updates: Record<Id, number> = {};
    for (const [id, average] of this.averages) {
      for (const [name, part] of Object.entries(average.stateDict())) {
        if (typeof part === "number") updates[id] = part;
        else tensors[`average.${id}.${name}`] = part;
      }
    }
    const { groups, evaluating, generator, scaler } = this;
    return {
      tensors,
      optimizers: Object.fromEntries([...this.trainers].map(([id, { optimizer }]) => [id, optimizer.stateDict()])),
      values: {
        schedules: Object.fromEntries(
          [...this.trainers].map(([id, { schedule }]) => [id, schedule?.stateDict() ?? null]),
        ),
        updates,
        groups,
        evaluating: [...evaluating],
        frozen: this.program.leaves
          .filter(({ id, kind }) => kind !== "data" && this.values.get(id)?.requiresGrad === false)
          .map(({ id }) => id),
        generator: generator.stateDict(),
        scaler: scaler?.stateDict() ?? null,
      },
    };
  }

  /** Goes on from what another world saved. */
  load({ tensors, optimizers, values }: Contents): void {
    const { schedules, updates, groups, evaluating, frozen, generator, scaler } = values;
    this.generator.loadStateDict(generator);
    for (const group of groups) this.addGroup(group);
    this.train(false, evaluating);
    for (const [id, value] of this.values) if (tensors[id] === undefined) value.dispose();
    const copied = (name: string, device: Device) => {
      const moved = tensors[name]!.to(device);
      const copy = moved.clone();
      moved.dispose();
      return copy;
    };
    const load = {
      model: () => {
        for (const [id, value] of this.values) {
          if (value.isDisposed) continue;
          try {
            value.set(tensors[id]!);
          } catch (error) {
            // A part is a copy, which can't be written: another one takes its place.
            if (!(error instanceof OptError) || error.code !== "BAD_STATE") throw error;
            this.values.set(id, this.own(copied(id, value.device)));
          }
        }
      },
      optimizer: () => {
        for (const [id, state] of Object.entries(optimizers)) this.trainer(id).optimizer.loadStateDict(state);
        if (scaler !== null) this.scaler!.loadStateDict(scaler);
        for (const [id, average] of this.averages) {
          const mine = Object.entries(tensors).filter(([name]) => name.startsWith(`average.${id}.`));
          const named = mine.map(([name, part]) => [name.slice(`average.${id}.`.length), part]);
          average.loadStateDict({ n_averaged: updates[id]!, ...Object.fromEntries(named) });
        }
      },
      schedule: () => {
        for (const [id, state] of Object.entries(schedules)) this.trainer(id).schedule?.loadStateDict(state);
      },
    };
    for (const part of this.program.resume.order) {
      this.at = `loading the ${part}`;
      load[part]();
    }
    for (const [id, value] of this.values) {
      if (`gradient.${id}` in tensors) value.grad = this.own(copied(`gradient.${id}`, value.device));
    }
    const results = Object.keys(tensors).filter((name) => name.startsWith("result."));
    this.results = new Map(results.map((name) => [name.slice("result.".length), copied(name, this.mode.device)]));
    for (const id of frozen) this.value(id).requiresGrad = false;
  }
}

function makeSchedule(kind: string, optimizer: AnyOptimizer, options: object): Schedule {
  const classes = schedules as unknown as Record<string, new (optimizer: AnyOptimizer, options: object) => Schedule>;
  return new classes[kind]!(optimizer, options);
}

/** A weight by its name in a state dictionary: `out_proj.weight`. */
function memberOf(layer: unknown, name: string): Tensor {
  return name.split(".").reduce((owner, key) => (owner as Record<string, unknown>)[key], layer) as Tensor;
}

/** Modules: functions with parameters, which are found by walking an object's properties. */
import {
  check,
  checkOptions,
  type Device,
  type DType,
  keep,
  markReplaced,
  OptError,
  observed,
  show,
  Tensor,
  tidy,
} from "@opt/core";
import { isPersistent, markPersistent } from "./buffer";
import { addForwardHook } from "./forward-hooks";
import { holdParameters, isParameter } from "./held";
import { loadState, type Misfit, type StateDict } from "./load-state";
import { members } from "./members";
import { replaceTensors } from "./replace";

/** By which modules are known, of whichever copy of this package. */
const mark: unique symbol = Symbol.for("@opt/nn.module");

/** Compiled functions follow the properties of what is constructed. Fields of subclasses are those of the proxy, #private ones too. */
abstract class Observed {
  constructor() {
    // biome-ignore lint/correctness/noConstructorReturn: what it returns is `this` of the subclasses
    return observed(this);
  }
}

/** What `onForward` calls: it returns another output, or nothing. */
export type ForwardHook<M extends Module> = (
  module: M,
  inputs: Parameters<M["forward"]>,
  output: ReturnType<M["forward"]>,
  // biome-ignore lint/suspicious/noConfusingVoidType: hooks that only look return nothing
) => ReturnType<M["forward"]> | void;

/** Which parameters `parameters` gives. */
export interface ParametersOptions {
  /** Those that require a gradient alone. Default false: frozen ones too. */
  readonly trainable?: boolean;
}

/**
 * The base of layers and models. A property that is a tensor is part of the state, a property that is a module is a child; so is
 * what lies in arrays, maps, sets and plain objects, however deep: `blocks[0].fc.weight` has the name "blocks.0.fc.weight", as in PyTorch.
 * Tensors that require a gradient are parameters, also while they are frozen; the others are buffers. What must stay out of the state is a
 * `buffer(x, { persistent: false })`, or goes into a #private field.
 * A property that held a parameter when the module was last asked for its tensors takes only parameters, or null: BAD_ARGUMENT otherwise.
 *
 * @example
 * class Net extends Module {
 *   hidden = new Linear(784, 256);
 *   output = new Linear(256, 10);
 *   forward(x: Tensor): Tensor {
 *     return this.output.forward(this.hidden.forward(x).relu());
 *   }
 * }
 */
export abstract class Module extends Observed {
  /** @internal */
  get [mark](): true {
    return true;
  }

  /** Whether layers that behave differently in training (Dropout) do so. */
  training = true;

  /** @throws OptError UNSUPPORTED if a class without types has left it out */
  abstract forward(...inputs: never[]): unknown;

  /** Child modules by name, in the order of the properties. */
  namedChildren(): Iterable<[string, Module]> {
    return [...members(this.constructor.name, this)].filter((member): member is [string, Module] =>
      isModule(member[1]),
    );
  }

  /** This module and all below it, each once, parents first. */
  modules(): Module[] {
    const found = new Set<Module>();
    const visit = (module: Module) => {
      if (found.has(module)) return;
      found.add(module);
      for (const [, child] of module.namedChildren()) visit(child);
    };
    visit(this);
    return [...found];
  }

  /**
   * Calls `hook` after each forward, with the module, its inputs and its output. What the hook returns replaces the output, unless it is
   * undefined. Hooks run in the order in which they were added. `keep` an output that you read later: the models' `tidy` frees it.
   * A compiled function replays what they computed.
   *
   * @returns removes the hook
   * @throws OptError BAD_ARGUMENT unless it is a function
   * @example
   * const layer = new Linear(4, 2);
   * const remove = layer.onForward((_layer, _inputs, output) => output.mul(2));
   * layer.forward(rand([1, 4])); // twice what it was
   * remove();
   */
  onForward<M extends Module>(this: M, hook: ForwardHook<M>): () => void {
    check(
      typeof hook === "function",
      "BAD_ARGUMENT",
      "onForward",
      () => `needs a function, got ${show(hook)}.`,
      "(module, inputs, output) => { ... }",
    );
    return addForwardHook(this, hook as Parameters<typeof addForwardHook>[1]);
  }

  /** Every tensor of the state under its dotted name, also a second time where it is shared. @throws OptError DUPLICATE if two share a name */
  namedTensors(): [string, Tensor][] {
    return heldBy(this)
      .filter(({ isState }) => isState)
      .map(({ name, tensor }) => [name, tensor]);
  }

  /**
   * The parameters by dotted name, frozen ones too, each once: PyTorch's `named_parameters()`. Optimizers skip those without a gradient, so
   * give them all: what is unfrozen later is then trained.
   *
   * @param options `trainable: true` gives those that require a gradient
   * @throws OptError BAD_ARGUMENT, DUPLICATE
   */
  namedParameters(options: ParametersOptions = {}): [string, Tensor][] {
    checkOptions("parameters", options, { trainable: "boolean" });
    const { trainable = false } = options;
    return eachOnce(heldBy(this)).filter(([, tensor]) => isParameter(tensor) && (!trainable || tensor.requiresGrad));
  }

  /** The parameters without their names. */
  parameters(options: ParametersOptions = {}): Tensor[] {
    return this.namedParameters(options).map(([, tensor]) => tensor);
  }

  /** The tensors that are no parameters by dotted name, each once, also those out of the state: PyTorch's `named_buffers()`. */
  namedBuffers(): [string, Tensor][] {
    return eachOnce(heldBy(this)).filter(([, tensor]) => !isParameter(tensor));
  }

  /** The buffers without their names. */
  buffers(): Tensor[] {
    return this.namedBuffers().map(([, tensor]) => tensor);
  }

  /** Parameters and buffers by name. They are views of the module's memory, without a tape: training goes on changing them. */
  stateDict(): StateDict {
    return Object.fromEntries(this.namedTensors().map(([name, tensor]) => [name, tensor.detach()]));
  }

  /**
   * Copies values into the module's tensors; dtypes are converted, devices may differ. A state that does not fit changes nothing. A name
   * whose value is undefined counts as lacking: `{ weight: loaded.tensors.weight }`. Tied tensors need one of their names: files may have
   * stored them once.
   *
   * @param options `strict: false` leaves tensors that the state lacks, and ignores names that the module lacks; one name at least must
   * fit. Shapes must fit in any case, as in PyTorch
   * @returns the names that the state lacks, and those that the module lacks: none unless it is not strict
   * @throws OptError BAD_STATE with the missing and unexpected names and the shapes that differ; NOT_SYNC from a device that answers only later
   */
  loadStateDict(
    state: Readonly<Record<string, Tensor | undefined>>,
    options: { readonly strict?: boolean } = {},
  ): Misfit {
    return loadState(this.constructor.name, () => this.namedTensors(), state, options);
  }

  /**
   * Moves to a device, or casts the floats to a dtype: parameters and buffers, here and in all children, are replaced by others of the same
   * names, tied ones by one. Make optimizers afterwards: steps of older ones throw BAD_STATE. What is in a #private field stays as it is.
   *
   * @throws OptError BAD_ARGUMENT for a device and a dtype at once; BAD_DTYPE, UNKNOWN_DEVICE; NOT_SYNC from a device that answers only later
   * @example
   * const model = new Linear(4, 2).to("bf16");
   */
  to(target: DType | Device | (string & {}), ...more: readonly never[]): this {
    check(
      more.length === 0,
      "BAD_ARGUMENT",
      "to",
      () => `takes a device or a dtype, got ${show([target, ...more])}.`,
      `For example .to("wasm").to("bf16").`,
    );
    checkTree(this, []);
    const found = new Map<Tensor, Tensor>();
    const isDType = FLOATS.includes(target as DType);
    for (const { tensor } of heldBy(this)) {
      if (!found.has(tensor))
        found.set(tensor, isDType && !FLOATS.includes(tensor.dtype) ? tensor : moved(tensor, target));
    }
    exchange(this, (tensor) => found.get(tensor) ?? tensor);
    for (const [tensor, other] of found) if (other !== tensor) markReplaced(tensor, other);
    return this;
  }

  /** Calls `body` with every child, innermost first, and with this module. */
  apply(body: (module: Module) => void): this {
    const isFunction = typeof body === "function";
    check(isFunction, "BAD_ARGUMENT", "apply", () => `needs a function, got ${show(body)}.`, "(module) => { ... }");
    checkTree(this, []);
    for (const [, child] of this.namedChildren()) child.apply(body);
    body(this);
    return this;
  }

  /** Sets training mode here and in all children. @throws OptError BAD_ARGUMENT */
  train(training = true): this {
    const isBoolean = typeof training === "boolean";
    check(isBoolean, "BAD_ARGUMENT", "train", () => `training must be true or false, got ${show(training)}.`);
    checkTree(this, []);
    this.training = training;
    for (const [, child] of this.namedChildren()) child.train(training);
    return this;
  }

  /** Leaves training mode: Dropout passes everything. */
  eval(): this {
    return this.train(false);
  }

  /** No parameter here and in all children requires a gradient any more: PyTorch's `requires_grad_(False)`. `parameters()` still has them. */
  freeze(): this {
    for (const tensor of this.parameters()) tensor.requiresGrad = false;
    return this;
  }

  /**
   * Every parameter here and in all children requires a gradient again. Buffers stay buffers. Optimizers of `parameters()` train it from
   * the next step on.
   *
   * @example
   * const model = new Sequential(new Linear(4, 8), new BatchNorm1d(8), new Linear(8, 2)).freeze();
   * model.namedChildren()[2]![1].unfreeze(); // only the last layer is trained
   */
  unfreeze(): this {
    for (const tensor of this.parameters()) tensor.requiresGrad = true;
    return this;
  }

  /** What `toString` writes between the brackets of a layer: its sizes and settings. */
  describe(): string {
    return "";
  }

  /** The layers, as PyTorch prints them. */
  override toString(): string {
    return write(this, []);
  }

  /** For console.log in Node. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
  }
}

Module.prototype.forward = function (this: Module): never {
  throw new OptError(
    "UNSUPPORTED",
    this.constructor.name,
    "a module must have a method forward, got none.",
    "Write forward(x) { ... } in its class.",
  );
};

const FLOATS: readonly unknown[] = ["f32", "f64", "f16", "bf16"] satisfies DType[];

/** The same under its name elsewhere, or itself if nothing changes. */
function moved(tensor: Tensor, target: DType | Device | (string & {})): Tensor {
  const there = tidy(() => tensor.detach().to(target));
  if (there.dtype === tensor.dtype && there.device === tensor.device) {
    there.dispose();
    return tensor;
  }
  const result = keep(there);
  if (isParameter(tensor)) result.isParameter = true;
  result.requiresGrad = tensor.requiresGrad;
  result.name = tensor.name;
  const persistent = isPersistent(tensor);
  if (persistent !== undefined) markPersistent(result, persistent);
  return result;
}

function exchange(module: Module, of: (tensor: Tensor) => Tensor): void {
  for (const each of module.modules()) replaceTensors(each, of);
}

/** True for modules, of whichever copy of this package. */
export function isModule(value: unknown): value is Module {
  return typeof value === "object" && value !== null && mark in value;
}

/** The children, none of which is a holder. @throws OptError BAD_ARGUMENT */
function children(module: Module, holders: readonly Module[]): [string, Module][] {
  const found = [...module.namedChildren()];
  for (const [name, child] of found) {
    check(
      child !== module && !holders.includes(child),
      "BAD_ARGUMENT",
      module.constructor.name,
      () => `${name} must not be a module that holds this one.`,
      "Keep a reference to it in a #private field.",
    );
  }
  return found;
}

function checkTree(module: Module, holders: readonly Module[]): void {
  for (const [, child] of children(module, holders)) checkTree(child, [...holders, module]);
}

function write(module: Module, holders: readonly Module[]): string {
  const { name } = module.constructor;
  if (holders.includes(module)) return `${name}(...)`;
  const own = module.describe();
  const lines = [...module.namedChildren()].map(([key, child]) => `(${key}): ${write(child, [...holders, module])}`);
  if (lines.length === 0) return `${name}(${own})`;
  const text = [...(own === "" ? [] : [own]), ...lines].join("\n").replaceAll("\n", "\n  ");
  return `${name}(\n  ${text}\n)`;
}

/** A tensor where a module holds it, under its dotted name. */
interface HeldTensor {
  readonly name: string;
  readonly tensor: Tensor;
  /** Part of `stateDict()`. */
  readonly isState: boolean;
}

/** All of them, also a second time where one is shared. @throws OptError DUPLICATE, BAD_ARGUMENT */
function heldBy(module: Module): HeldTensor[] {
  const held = [...walk(module, "", [])];
  const seen = new Set<string>();
  for (const { name } of held) {
    const problem = () => `two tensors have the name ${name}.`;
    check(!seen.has(name), "DUPLICATE", module.constructor.name, problem, "Use keys without dots.");
    seen.add(name);
  }
  return held;
}

function eachOnce(held: readonly HeldTensor[]): [string, Tensor][] {
  const names = new Map<Tensor, string>();
  for (const { name, tensor } of held) if (!names.has(tensor)) names.set(tensor, name);
  return [...names].map(([tensor, name]) => [name, tensor]);
}

function* walk(module: Module, prefix: string, holders: readonly Module[]): Generator<HeldTensor> {
  holdParameters(module);
  for (const [name, value] of members(module.constructor.name, module)) {
    if (value instanceof Tensor) yield { name: prefix + name, tensor: value, isState: isPersistent(value) ?? true };
  }
  for (const [name, child] of children(module, holders)) {
    yield* walk(child, `${prefix}${name}.`, [...holders, module]);
  }
}

/** Modules: functions with parameters, which are found by walking an object's properties. */
import { OptError, Tensor } from "@opt/core";

/** Values by dotted name: PyTorch's `state_dict`, for checkpoints of both worlds. */
export type StateDict = Record<string, Tensor>;

/**
 * The base of layers and models. A property that is a tensor is part of the state, a property that is a module or an array
 * of modules is a child: `blocks[0].fc.weight` has the name "blocks.0.fc.weight", as in PyTorch.
 * Tensors that require a gradient are parameters, the others buffers. What must stay out of the state goes into a #private field.
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
export abstract class Module {
  /** Whether layers that behave differently in training (Dropout) do so. */
  training = true;

  abstract forward(...inputs: never[]): unknown;

  /** Child modules by name, in the order of the properties. */
  *namedChildren(): Generator<[string, Module]> {
    for (const [name, value] of members(this)) if (value instanceof Module) yield [name, value];
  }

  /** Every tensor under its dotted name, also a second time where it is shared. */
  *namedTensors(prefix = ""): Generator<[string, Tensor]> {
    for (const [name, value] of members(this)) if (value instanceof Tensor) yield [prefix + name, value];
    for (const [name, child] of this.namedChildren()) yield* child.namedTensors(`${prefix}${name}.`);
  }

  /** What optimizers train, by dotted name: each tensor that requires a gradient, once. */
  *namedParameters(): Generator<[string, Tensor]> {
    const seen = new Set<Tensor>();
    for (const [name, tensor] of this.namedTensors()) {
      if (!tensor.requiresGrad || seen.has(tensor)) continue;
      seen.add(tensor);
      yield [name, tensor];
    }
  }

  *parameters(): Generator<Tensor> {
    for (const [, tensor] of this.namedParameters()) yield tensor;
  }

  /** Parameters and buffers by name. They are views of the module's memory, without a tape: training goes on changing them. */
  stateDict(): StateDict {
    return Object.fromEntries([...this.namedTensors()].map(([name, tensor]) => [name, tensor.detach()]));
  }

  /**
   * Copies values into the module's tensors; dtypes are converted, devices may differ. A state that does not fit changes nothing.
   *
   * @param options `strict: false` leaves tensors that the state lacks, and ignores names that the module lacks
   * @throws OptError BAD_STATE with the missing and unexpected names and the shapes that differ
   */
  loadStateDict(state: Readonly<StateDict>, { strict = true }: { strict?: boolean } = {}): void {
    const own = new Map(this.namedTensors());
    const problems: string[] = [];
    for (const [name, tensor] of own) {
      const value = Object.hasOwn(state, name) ? state[name] : undefined;
      if (value === undefined) {
        if (strict) problems.push(`${name} is missing`);
      } else if (!(value instanceof Tensor)) {
        problems.push(`${name} is not a tensor`);
      } else if (String(value.shape) !== String(tensor.shape) || value.shape.length !== tensor.shape.length) {
        problems.push(`${name} has shape [${value.shape}] instead of [${tensor.shape}]`);
      }
    }
    if (strict) for (const name of Object.keys(state)) if (!own.has(name)) problems.push(`${name} is unexpected`);
    if (problems.length > 0) {
      throw new OptError(
        "BAD_STATE",
        this.constructor.name,
        `the state must fit the module, got: ${problems.join("; ")}.`,
        "Build the module with the sizes it was saved with, or pass { strict: false }.",
      );
    }
    for (const [name, tensor] of own) if (Object.hasOwn(state, name)) tensor.set(state[name]!);
  }

  /** Sets training mode here and in all children. */
  train(training = true): this {
    this.training = training;
    for (const [, child] of this.namedChildren()) child.train(training);
    return this;
  }

  /** Leaves training mode: Dropout passes everything. */
  eval(): this {
    return this.train(false);
  }
}

/** Properties, with the items of arrays as "name.0", "name.1", ... */
function* members(module: Module): Generator<[string, unknown]> {
  for (const [name, value] of Object.entries(module)) {
    if (Array.isArray(value)) for (const [i, item] of value.entries()) yield [`${name}.${i}`, item];
    else yield [name, value];
  }
}

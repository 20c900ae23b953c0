/** Steps of an optimizer on typed arrays of the program: for models that know no tensors (written by hand, ONNX gradients, other libraries). */

import { runsOnce } from "../device/host-code";
import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { checkOptions } from "../errors/options";
import { isPlainObject, show } from "../errors/show";
import { hostBytes, readInto } from "../tensor/read";
import { Storage } from "../tensor/storage";
import { Tensor } from "../tensor/tensor";
import { ArrayRanges } from "./array-ranges";

/** Elements of a parameter or a gradient, in the host's memory. */
export type FloatArray = Float32Array | Float64Array;

/** A value for each parameter of an optimizer: by its name, or in the optimizer's order. */
export type PerParameter<Value> = Readonly<Record<string, Value>> | readonly Value[];

/** An optimizer, as far as `stepArrays` sees it. */
export interface Steppable {
  readonly groups: readonly { readonly params: readonly Tensor[]; readonly names: readonly string[] }[];
  step(): void;
}

const WHERE = "stepArrays";
const LISTED = 5;

/**
 * One step of an optimizer on typed arrays: `params` are updated in place by `grads`. The optimizer is made of a
 * `parameter(array)` for each; state, options, hooks and schedules are its own.
 *
 *     tensor = params[i], tensor.grad = grads[i]          optimizer.step()          params[i] = tensor, tensor.grad = null
 *
 * If a tensor is its array (on `cpu`, which `parameter` uses in place), nothing is copied, gradients included. Elsewhere parameters
 * and gradients are copied in, parameters out. A gradient that is null leaves its parameter alone.
 *
 * @param params Float32Array for parameters in f32, Float64Array for f64, of their sizes
 * @param grads likewise; they are read, not changed, but by what a hook does to `.grad`
 * @param options `unchanged`: the program has left `params` alone since the last call for this optimizer, which need not copy them in. Default false
 * @throws OptError BAD_ARGUMENT for arrays that are missing, unknown, overlapping, or not the tensor's own array; BAD_SHAPE,
 * BAD_DTYPE; NOT_SYNC on devices that cannot be read without waiting (webgpu); UNSUPPORTED in a compiled function; further as `step`.
 * Nothing has changed then.
 * @example
 * const weights = { w: new Float32Array([1, 2]), b: new Float32Array(1) };
 * const optimizer = new AdamW(Object.entries(weights).map(([name, values]) => [name, parameter(values)]), { lr: 0.1 });
 * stepArrays(optimizer, weights, { w: new Float32Array([0.5, -0.5]), b: null }); // weights.w is about [0.9, 2.1]
 */
export function stepArrays(
  optimizer: Steppable,
  params: PerParameter<FloatArray>,
  grads: PerParameter<FloatArray | null>,
  options: { readonly unchanged?: boolean } = {},
): void {
  runsOnce(WHERE, "step arrays of the program", "Call it outside.");
  checkOptions(WHERE, options, { unchanged: "boolean" });
  const known = parametersOf(optimizer);
  const arrays = matched("params", params, known);
  const gradients = matched("grads", grads, known).map((array, i) =>
    array === null ? null : checkedArray("grads", known[i]!, array),
  );
  const bindings = known.map((parameter, i) => new Binding(parameter, checkedArray("params", parameter, arrays[i])));
  const ranges = new ArrayRanges(bindings.map(({ array }) => array));
  const pair = ranges.overlapping()?.map((i) => known[i]!.name);
  check(
    pair === undefined,
    "BAD_ARGUMENT",
    WHERE,
    () => `arrays of parameters must not overlap, got ${pair!.join(" and ")}.`,
    "Tied weights are one parameter; its gradient is the sum.",
  );
  try {
    bindings.forEach(({ tensor }, i) => {
      const array = gradients[i]!;
      tensor.grad = array === null ? null : gradientOf(tensor, array, !ranges.touches(array));
    });
    for (const binding of bindings) binding.bringIn(options.unchanged);
    const waited: unknown = optimizer.step();
    check(
      waited === undefined,
      "UNSUPPORTED",
      WHERE,
      () => "an optimizer whose step waits for others has divided its parameters.",
      "Step its tensors.",
    );
  } finally {
    for (const { tensor } of bindings) tensor.grad = null; // which frees them
  }
  for (const binding of bindings) binding.takeOut();
}

interface Parameter {
  readonly name: string;
  readonly tensor: Tensor;
}

/** A parameter and the array that it is for the time of a step. */
class Binding {
  readonly tensor: Tensor;
  /** The tensor's memory is the array. */
  readonly #isSame: boolean;

  /** @throws OptError BAD_ARGUMENT, NOT_SYNC, DISPOSED */
  constructor(
    { name, tensor }: Parameter,
    readonly array: FloatArray,
  ) {
    this.tensor = tensor;
    const { device, storage } = tensor;
    check(
      device.backend.readSync !== undefined,
      "NOT_SYNC",
      WHERE,
      () => `${device.name} cannot be read without waiting.`,
      "Use js, wasm or cpu.",
    );
    const bytes = hostBytes(tensor, "read");
    this.#isSame = bytes?.buffer === array.buffer && bytes.byteOffset === array.byteOffset;
    check(
      this.#isSame || !storage.isBorrowed,
      "BAD_ARGUMENT",
      WHERE,
      () => `${name} must be the array that its parameter was made of, got another.`,
      "Copy into that array with set(), or make a new optimizer.",
    );
  }

  bringIn(unchanged = false): void {
    const { tensor, array } = this;
    if (unchanged) return;
    tensor.storage.overwritten(); // by the program perhaps, since the last step
    if (!this.#isSame) tensor.device.write(tensor.memorySlice(), bytesOf(array));
  }

  takeOut(): void {
    const { tensor, array } = this;
    if (!this.#isSame) readInto(tensor, bytesOf(array));
  }
}

function bytesOf({ buffer, byteOffset, byteLength }: FloatArray): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** In the array itself, where the device can read it there while it writes parameters. */
function gradientOf({ shape, dtype, device }: Tensor, array: FloatArray, isApart: boolean): Tensor {
  const memory = isApart ? device.wrap(array) : undefined;
  const gradient =
    memory === undefined
      ? Tensor.empty(shape, dtype, device)
      : new Tensor(new Storage(device, memory, true), 0, shape, dtype);
  if (memory === undefined) device.write(gradient.memorySlice(), bytesOf(array));
  return gradient;
}

/** @throws OptError BAD_ARGUMENT */
function parametersOf(optimizer: Steppable): Parameter[] {
  const groups = Object(optimizer).groups;
  const isOptimizer = Array.isArray(groups) && typeof optimizer.step === "function";
  check(
    isOptimizer,
    "BAD_ARGUMENT",
    WHERE,
    () => `needs an optimizer, got ${show(optimizer)}.`,
    "For example new AdamW([parameter(array)]).",
  );
  return optimizer.groups.flatMap(({ params, names }) => params.map((tensor, i) => ({ name: names[i]!, tensor })));
}

/** What is given for each parameter. @throws OptError BAD_ARGUMENT */
function matched(what: string, given: PerParameter<unknown>, known: readonly Parameter[]): unknown[] {
  const isList = Array.isArray(given);
  checkValue(
    isList || isPlainObject(given),
    WHERE,
    what,
    "arrays in a list or by name",
    given,
    "For example { w: new Float32Array(3) }.",
  );
  const names = known.map(({ name }) => name);
  if (isList) {
    check(
      given.length === names.length,
      "BAD_ARGUMENT",
      WHERE,
      () => `${what} must have one for each of ${names.length} parameters, got ${given.length}.`,
      "null leaves a parameter alone, in grads.",
    );
    return [...given];
  }
  const record = given as Readonly<Record<string, unknown>>;
  const wanted = new Set(names);
  const list = (some: readonly string[]) => `${some.slice(0, LISTED).join(", ")}${some.length > LISTED ? ", ..." : ""}`;
  const missing = names.filter((name) => !Object.hasOwn(record, name));
  const unknown = Object.keys(record).filter((name) => !wanted.has(name));
  const advice = `The optimizer's parameters are ${list(names)}.`;
  check(
    missing.length === 0,
    "BAD_ARGUMENT",
    WHERE,
    () => `${what} lacks ${list(missing)}${unknown.length > 0 ? `, and has ${list(unknown)}` : ""}.`,
    advice,
  );
  check(unknown.length === 0, "BAD_ARGUMENT", WHERE, () => `${what} has ${list(unknown)}, which none is.`, advice);
  return names.map((name) => record[name]);
}

const ARRAYS: Readonly<Record<string, string>> = { f32: "Float32Array", f64: "Float64Array" };

/** @throws OptError BAD_ARGUMENT, BAD_DTYPE, BAD_SHAPE */
function checkedArray(what: string, { name, tensor }: Parameter, array: unknown): FloatArray {
  const { dtype, size } = tensor;
  const kind = ARRAYS[dtype];
  check(
    kind !== undefined,
    "BAD_DTYPE",
    WHERE,
    () => `parameters must be f32 or f64, got ${dtype} (${name}).`,
    "Step its tensor: assign .grad and call step().",
  );
  const problem = () => `${what} must hold a ${kind} for ${name}, which is ${dtype}, got ${show(array)}.`;
  const isArray = ArrayBuffer.isView(array);
  check(isArray, "BAD_ARGUMENT", WHERE, problem, "Wrap numbers: Float32Array.from(list).");
  // By its tag: an array of another realm is no instance of this one's class.
  const isKind = (array as FloatArray)[Symbol.toStringTag] === kind;
  check(isKind, "BAD_DTYPE", WHERE, problem, `Convert it: ${kind}.from(array).`);
  const { length } = array as FloatArray;
  check(
    length === size,
    "BAD_SHAPE",
    WHERE,
    () => `${what} must hold ${size} elements for ${name}, got ${length}.`,
    "An array whose buffer was transferred has none.",
  );
  return array as FloatArray;
}

/** A model's parameters and buffers, as those who average its gradients take them. */
import { check, show, Tensor } from "@opt/core";
import { digest } from "../communicator/digest";
import { bytesOf } from "../communicator/staging";

export interface NamedParameter {
  readonly name: string;
  readonly tensor: Tensor;
}

/** What DataParallel asks of a model: every Module has it. */
export interface Trainable {
  forward(...inputs: never[]): unknown;
  /** Those that require a gradient are averaged. */
  namedParameters(): Iterable<[string, Tensor]>;
  namedBuffers?(): Iterable<[string, Tensor]>;
}

/** What a model has, by what becomes of it. */
export interface ModelTensors {
  readonly trainable: readonly NamedParameter[];
  /** Parameters that require no gradient: nothing is sent for them. */
  readonly frozen: readonly NamedParameter[];
  readonly buffers: readonly NamedParameter[];
}

/** Each parameter is averaged by one: two would add to the same gradient at once. */
export const averagedBy = new WeakMap<Tensor, object>();

function checkParameters(where: string, parameters: readonly NamedParameter[]): void {
  const [first] = parameters;
  check(first, "BAD_ARGUMENT", where, () => "the model has no parameters that require a gradient.");
  const names = new Map<Tensor, string>();
  for (const { name, tensor } of parameters) {
    check(
      !names.has(tensor),
      "DUPLICATE",
      where,
      () => `a parameter must have one name, got ${names.get(tensor)} and ${name} for one tensor.`,
      "Name it once in namedParameters().",
    );
    names.set(tensor, name);
    check(
      !averagedBy.has(tensor),
      "BAD_STATE",
      where,
      () => `another ${averagedBy.get(tensor)!.constructor.name} averages the gradients of ${name}.`,
      "dispose() that one first.",
    );
    check(
      tensor.dtype !== "c64",
      "UNSUPPORTED",
      where,
      () => `${name} is complex, which is not averaged.`,
      "Train its two parts, and compute with viewAsComplex(parts).",
    );
    const { device } = first.tensor;
    check(
      tensor.device === device,
      "DEVICE_MISMATCH",
      where,
      () =>
        `all parameters must be on one device, got ${first.name} on ${device.name} and ${name} on ${tensor.device.name}.`,
      "Move the model with to().",
    );
  }
}

/** @throws OptError BAD_ARGUMENT, DUPLICATE, BAD_STATE, UNSUPPORTED, DEVICE_MISMATCH */
export function tensorsOf(where: string, module: Trainable): ModelTensors {
  const listed = (named: Iterable<[string, Tensor]>): NamedParameter[] =>
    [...named].map(([name, tensor]) => {
      check(tensor instanceof Tensor, "BAD_ARGUMENT", where, () => `${name} must be a tensor, got ${show(tensor)}.`);
      return { name, tensor };
    });
  const parameters = listed(module.namedParameters());
  const trainable = parameters.filter(({ tensor }) => tensor.requiresGrad);
  checkParameters(where, trainable);
  const frozen = parameters.filter(({ tensor }) => !tensor.requiresGrad);
  return { trainable, frozen, buffers: listed(module.namedBuffers?.() ?? []) };
}

/** Each parameter that requires a gradient must be averaged by `by`. @throws OptError BAD_STATE */
export function checkAveraged(where: string, parameters: Iterable<NamedParameter>, by: object): void {
  for (const { name, tensor } of parameters) {
    check(
      !tensor.requiresGrad || averagedBy.get(tensor) === by,
      "BAD_STATE",
      where,
      () => `${name} was replaced, added or unfrozen since, and is not averaged.`,
      `Change the model before new ${where}, or dispose() this one and make another.`,
    );
  }
}

/** What ranks must agree on: as it is now, for the first forward writes to buffers. */
export async function linesOf(all: readonly NamedParameter[], settings: string): Promise<string[]> {
  const digests = all.map(({ tensor }) => {
    const bytes = bytesOf(tensor);
    return bytes instanceof Uint8Array ? digest(bytes) : bytes.then(digest);
  });
  const values = await Promise.all(digests);
  return [
    settings,
    ...all.map(({ name, tensor: { dtype, shape } }, i) => `${name} ${dtype} [${shape}] values ${values[i]}`),
  ];
}

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
  namedParameters(): Iterable<[string, Tensor]>;
  /** All of its state: what is no parameter is a buffer. */
  namedTensors?(): Iterable<[string, Tensor]>;
}

/** Each parameter is averaged by one: two would add to the same gradient at once. */
export const averagedBy = new WeakMap<Tensor, object>();

export function checkParameters(where: string, parameters: readonly NamedParameter[]): void {
  const [first] = parameters;
  check(first, "BAD_ARGUMENT", where, () => "the model has no parameters that require a gradient.");
  const names = new Map<Tensor, string>();
  for (const { name, tensor } of parameters) {
    check(tensor instanceof Tensor, "BAD_ARGUMENT", where, () => `${name} must be a tensor, got ${show(tensor)}.`);
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

export function buffersOf(where: string, module: Trainable): NamedParameter[] {
  const seen = new Set<Tensor>();
  const buffers: NamedParameter[] = [];
  for (const [name, tensor] of module.namedTensors?.() ?? []) {
    check(tensor instanceof Tensor, "BAD_ARGUMENT", where, () => `${name} must be a tensor, got ${show(tensor)}.`);
    if (!tensor.requiresGrad && !seen.has(tensor)) buffers.push({ name, tensor });
    seen.add(tensor);
  }
  return buffers;
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

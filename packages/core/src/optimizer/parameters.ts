/** What optimizers are given to train: tensors, named tensors, or groups of either with options of their own. */

import { isFloat } from "../dtype";
import { OptError } from "../errors";
import { Tensor } from "../tensor";
import type { BaseOptions, GroupOptions } from "./algorithm";

export type Parameters = Iterable<Tensor> | Iterable<readonly [string, Tensor]>;

/** A group as users give it: its own options win over the optimizer's. */
export type GroupInput<Options> = { params: Parameters | Tensor } & Partial<Options> & GroupOptions;

export type OptimizerInput<Options extends BaseOptions> = Parameters | Iterable<GroupInput<Options>>;

/** A parameter under the name by which state dicts know it; null: it has none of its own. */
export interface NamedParameter {
  readonly name: string | null;
  readonly tensor: Tensor;
}

/** Splits the constructor's argument into groups. @throws OptError BAD_ARGUMENT */
export function toGroups<Options extends BaseOptions>(
  where: string,
  input: OptimizerInput<Options>,
): GroupInput<Options>[] {
  if (input instanceof Tensor || typeof input !== "object" || input === null || !(Symbol.iterator in input)) {
    const got = input instanceof Tensor ? "one tensor" : typeof input;
    throw new OptError(
      "BAD_ARGUMENT",
      where,
      `params must be a list of tensors, named tensors or groups, got ${got}.`,
      "Wrap it: [w].",
    );
  }
  const items = [...input];
  if (items.length === 0) {
    throw new OptError(
      "BAD_ARGUMENT",
      where,
      "got an empty parameter list.",
      "Pass model.parameters() of a model that has some.",
    );
  }
  const isGroup = (item: unknown): item is GroupInput<Options> =>
    typeof item === "object" && item !== null && !(item instanceof Tensor) && !Array.isArray(item);
  if (items.every(isGroup)) return items;
  if (items.some(isGroup)) {
    throw new OptError(
      "BAD_ARGUMENT",
      where,
      "params must be all groups or all tensors, got both.",
      "Wrap the tensors: { params: [...] }.",
    );
  }
  return [{ params: items as Tensor[] } as unknown as GroupInput<Options>];
}

/** The parameters of a group. @throws OptError BAD_ARGUMENT, BAD_DTYPE */
export function toParameters(where: string, params: Parameters | Tensor): NamedParameter[] {
  if (
    params === undefined ||
    params === null ||
    (!(params instanceof Tensor) && !(Symbol.iterator in Object(params)))
  ) {
    throw new OptError(
      "BAD_ARGUMENT",
      where,
      `a group needs params, got ${String(params)}.`,
      "Pass { params: [w], lr: 0.1 }.",
    );
  }
  const items: unknown[] = params instanceof Tensor ? [params] : [...params];
  return items.map((item) => {
    const [name, tensor] = Array.isArray(item) ? item : [(item as Tensor | null)?.name ?? null, item];
    if (!(tensor instanceof Tensor) || (name !== null && typeof name !== "string")) {
      throw new OptError(
        "BAD_ARGUMENT",
        where,
        `a parameter must be a Tensor or [name, Tensor], got ${show(item)}.`,
        "Make it with parameter(data).",
      );
    }
    checkTrainable(where, name ?? String(tensor), tensor);
    return { name, tensor };
  });
}

function checkTrainable(where: string, name: string, tensor: Tensor): void {
  tensor.memorySlice(); // refuses disposed tensors
  if (tensor.node !== null) {
    throw new OptError(
      "BAD_ARGUMENT",
      where,
      `only leaves can be optimized, got the result of a computation (${name}).`,
      "Use detach(), or make it with parameter(data).",
    );
  }
  if (!isFloat(tensor.dtype)) {
    throw new OptError(
      "BAD_DTYPE",
      where,
      `parameters must be floating-point, got ${tensor.dtype} (${name}).`,
      `Use dtype: "f32".`,
    );
  }
}

function show(item: unknown): string {
  return Array.isArray(item) ? `[${item.map((x) => typeof x).join(", ")}]` : item === null ? "null" : typeof item;
}

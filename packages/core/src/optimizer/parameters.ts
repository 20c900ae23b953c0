/** The first argument of optimizers: tensors, named tensors, or groups of them with their own options. */

import { checkValue } from "../errors/check-value";
import { check } from "../errors/errors";
import { checkSteppable } from "../tensor/copied";
import { Tensor } from "../tensor/tensor";
import { isDifferentiable } from "../values/dtype";
import type { BaseOptions, GroupOptions } from "./algorithm";

export type Parameters = Iterable<Tensor> | Iterable<readonly [string, Tensor]>;

/** A group as users give it: its own options win over the optimizer's. */
export type GroupInput<Options> = { params: Parameters | Tensor } & Partial<Options> & GroupOptions;

export type OptimizerInput<Options extends BaseOptions> = Parameters | Iterable<GroupInput<Options>>;

/** A parameter and its name in state dicts; null if it has no name of its own. */
export interface NamedParameter {
  readonly name: string | null;
  readonly tensor: Tensor;
}

/** Splits the constructor's argument into groups. @throws OptError BAD_ARGUMENT */
export function toGroups<Options extends BaseOptions>(
  where: string,
  input: OptimizerInput<Options>,
): GroupInput<Options>[] {
  checkValue(
    typeof input === "object" && input !== null && !(input instanceof Tensor) && Symbol.iterator in input,
    where,
    "params",
    "a list of tensors, named tensors or groups",
    input,
    isModel(input) ? FROM_MODEL : "Wrap it: [w].",
  );
  const items = listOf<Tensor | readonly [string, Tensor] | GroupInput<Options>>(where, input);
  check(
    items.length > 0,
    "BAD_ARGUMENT",
    where,
    () => "got an empty parameter list.",
    "Pass model.parameters() of a model that has some.",
  );
  const isGroup = (item: unknown): item is GroupInput<Options> =>
    typeof item === "object" && item !== null && !(item instanceof Tensor) && !Array.isArray(item);
  for (const item of items) {
    check(
      !isModel(item),
      "BAD_ARGUMENT",
      where,
      () => "params must be tensors, named tensors or groups, got a module among them.",
      FROM_MODEL,
    );
  }
  if (items.every(isGroup)) return items;
  const problem = () => "params must be all groups or all tensors, got both.";
  check(!items.some(isGroup), "BAD_ARGUMENT", where, problem, "Wrap the tensors: { params: [...] }.");
  return [{ params: items as Tensor[] } as unknown as GroupInput<Options>];
}

/** The parameters of a group. @throws OptError BAD_ARGUMENT, BAD_DTYPE */
export function toParameters(where: string, params: Parameters | Tensor): NamedParameter[] {
  return itemsOf<unknown>(where, params).map((item) => {
    const [name, tensor] = Array.isArray(item) ? item : [(item as Tensor | null)?.name ?? null, item];
    checkValue(
      tensor instanceof Tensor && (name === null || typeof name === "string"),
      where,
      "a parameter",
      "a Tensor or [name, Tensor]",
      item,
      isModel(item) ? FROM_MODEL : "Make it with parameter(data).",
    );
    checkTrainable(where, name ?? tensor, tensor);
    return { name, tensor };
  });
}

/** The one tensor, or the items of a list. @throws OptError BAD_ARGUMENT */
export function itemsOf<Item>(where: string, params: Iterable<Item> | Tensor): (Item | Tensor)[] {
  if (params instanceof Tensor) return [params];
  const isList = typeof params === "object" && params !== null && Symbol.iterator in params;
  checkValue(isList, where, "params", "a tensor or a list of them", params, FROM_MODEL);
  return listOf(where, params);
}

/**
 * The items of a list. An iterator gives its items once: an empty one was most likely used before, and its parameters would silently
 * not be trained.
 *
 * @throws OptError BAD_ARGUMENT
 */
function listOf<Item>(where: string, list: Iterable<Item>): Item[] {
  const items = [...list];
  check(
    items.length > 0 || (list[Symbol.iterator]() as unknown) !== list,
    "BAD_ARGUMENT",
    where,
    () => "params must hold parameters, got an iterator that is empty or used up.",
    "Call model.parameters() again, or keep [...model.parameters()].",
  );
  return items;
}

function checkTrainable(where: string, name: unknown, tensor: Tensor): void {
  tensor.memorySlice(); // throws for disposed tensors
  checkSteppable(where, tensor);
  check(
    tensor.node === null,
    "BAD_ARGUMENT",
    where,
    () => `only leaves can be optimized, got the result of a computation (${name}).`,
    "Use detach(), or make it with parameter(data).",
  );
  check(
    isDifferentiable(tensor.dtype),
    "BAD_DTYPE",
    where,
    () => `parameters must be floating-point, got ${tensor.dtype} (${name}).`,
    `Use dtype: "f32".`,
  );
}

const FROM_MODEL = "Pass model.parameters().";

/** A module of any library: its parameters are behind a method. */
function isModel(value: unknown): boolean {
  return typeof (value as { parameters?: unknown } | null | undefined)?.parameters === "function";
}

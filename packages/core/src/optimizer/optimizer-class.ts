/** Reads an optimizer's algorithm from its class, for callers that have no instance. */
import { check } from "../errors/errors";
import { show } from "../errors/show";
import type { Algorithm, BaseOptions, GroupOptions } from "./algorithm";
import { modifiable } from "./modifications/modified";
import type { Optimizer } from "./optimizer";
import type { OptimizerInput } from "./parameters";

/** The class of an optimizer. */
export type OptimizerClass<Options extends BaseOptions> = new (
  params: OptimizerInput<Options>,
  options?: Partial<Options> & GroupOptions,
) => Optimizer<Options>;

/** The algorithm of a class. @throws OptError BAD_ARGUMENT for anything else */
export function algorithmOf<Options extends BaseOptions>(
  where: string,
  optimizer: OptimizerClass<Options>,
): Algorithm<Options> {
  const { prototype } = Object(optimizer) as { prototype?: { define?(): Algorithm<Options> } };
  const isClass = typeof prototype?.define === "function";
  check(
    isClass,
    "BAD_ARGUMENT",
    where,
    () => `needs the class of an optimizer, got ${show(optimizer)}.`,
    "For example AdamW, of @opt/adam-amsgrad.",
  );
  return modifiable(prototype!.define!());
}

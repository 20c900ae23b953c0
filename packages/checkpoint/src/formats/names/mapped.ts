/** What a map says about optimizer state, against the shapes that are there. */
import { OptError } from "@opt/core";
import { isFloating } from "../../format/dtype";
import type { SourceTensor } from "../../format/source";
import { badState } from "../bytes/errors";
import { SHAPED_STATES } from "./states";

/** Counters and states of generators are not weights. A file with nothing else is not the model's. */
export function isWeight({ dtype, shape }: SourceTensor): boolean {
  return isFloating(dtype) && shape.length > 0;
}

/** Throws BAD_STATE where the map gives state to what is no parameter, BAD_SHAPE where to one of another shape. */
export function rejectMapped(
  entry: string,
  name: string,
  shape: readonly number[] | undefined,
  parameters: readonly (readonly [name: string, tensor: SourceTensor])[],
  path: string,
): void {
  const meant = parameters.filter(([known]) => known === name).map(([, tensor]) => tensor);
  const says = `the map gives the state ${JSON.stringify(entry)} to ${JSON.stringify(name)}`;
  if (meant.length === 0) {
    const some = [...new Set(parameters.map(([known]) => known))].slice(0, 8).join(", ");
    throw badState(path, `${says}, which is no parameter`, `There are ${some}.`);
  }
  if (shape === undefined || meant.some((tensor) => `${tensor.shape}` === `${shape}`)) return;
  const problem = `${says} of [${meant[0]!.shape}], the state has [${shape}].`;
  throw new OptError("BAD_SHAPE", path, problem, "Correct the map.");
}

/** The same for tensors that the map names `<parameter>.<state>` themselves. `mapped`: new names by the source's; `all` by the new. */
export function checkMappedStates(
  mapped: ReadonlyMap<string, string>,
  all: ReadonlyMap<string, SourceTensor>,
  path: string,
): void {
  const parameterOf = (name: string): string | undefined => {
    const dot = name.lastIndexOf(".");
    return dot > 0 && SHAPED_STATES.includes(name.slice(dot + 1)) ? name.slice(0, dot) : undefined;
  };
  const states = [...mapped].filter(([, name]) => parameterOf(name) !== undefined);
  if (states.length === 0) return;
  const parameters = [...all].filter(([name]) => parameterOf(name) === undefined);
  if (!parameters.some(([, tensor]) => isWeight(tensor))) return;
  for (const [entry, name] of states) rejectMapped(entry, parameterOf(name)!, all.get(name)!.shape, parameters, path);
}

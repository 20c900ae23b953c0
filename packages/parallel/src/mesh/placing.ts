/** Who saves divided tensors together, and with which layout. */
import { check } from "@opt/core";
import type { NamedTensors, Placing } from "../communicator/above";
import type { Communicator } from "../communicator/communicator";
import { axisOf } from "../placement/axis";
import { layoutOfTensors } from "../placement/layout";
import { meshOf } from "./mesh";
import { meshFor } from "./neighbours";

const WHERE = "placing";

/**
 * All ranks that have parts of tensors, where those of `communicator` have other samples each.
 *
 * @param dividesModel tensors may be divided over these ranks, too
 * @throws OptError BAD_ARGUMENT
 */
export function placing(
  communicator: Communicator,
  tensors: NamedTensors,
  dividesModel: boolean,
): Placing<Communicator> {
  const grid = meshOf(communicator);
  const own = axisOf(communicator);
  const given = grid?.axes.map((name) => [name, grid.axis(name)] as const) ?? [["rank", communicator] as const];
  const { mesh, names } = meshFor(given, tensors);
  const layout = layoutOfTensors(mesh, tensors, (axis, name) => {
    const found = names.get(axis);
    check(
      found !== undefined && (axis !== own || dividesModel),
      "BAD_ARGUMENT",
      WHERE,
      () => `${name} is divided over "${axis.name}", whose ranks must have the same samples.`,
      `Make a mesh such as mesh(communicator, { data: 1, model: ${axis.size} }); its axis "data" divides samples, "model" the layers.`,
    );
    return found;
  });
  return { communicator: grid?.communicator ?? communicator, layout };
}

/** The checkpoint's layout of a model with divided tensors. */
import type { Layout } from "@opt/checkpoint";
import { check, show } from "@opt/core";
import { Module } from "@opt/nn";
import { partOfWhole } from "./fully-sharded/fully-sharded";
import { ProcessMesh } from "./mesh/mesh";
import { meshFor } from "./mesh/neighbours";
import { layoutOfTensors } from "./placement/layout";

/**
 * The layout of a model on a mesh, for `saveCheckpoint` and `loadCheckpoint`: divided tensors as their `placement` says, all others
 * whole on every rank. Optimizer state follows. Loading on another mesh is loading with the layout there: nothing else.
 *
 * @throws OptError BAD_ARGUMENT for a tensor that is divided by other ranks than an axis of the mesh
 * @example
 * const grid = mesh(await connect(), { data: 1, model: 1 });
 * const net = new Sequential(new ColumnParallelLinear(4, 6, grid.axis("model")), new ReLU());
 * console.log(layoutOf(net, grid).tensors); // on two ranks: "0.weight": ["model", null], "0.bias": ["model"], "*": "replicate"
 */
export function layoutOf(model: Module, mesh: ProcessMesh): Layout {
  const where = "layoutOf";
  check(model instanceof Module, "BAD_ARGUMENT", where, () => `needs a module, got ${show(model)}.`);
  check(mesh instanceof ProcessMesh, "BAD_ARGUMENT", where, () => `needs a mesh, got ${show(mesh)}.`, "mesh(...)");
  const tensors = model.namedTensors().map(([name, tensor]) => [name, partOfWhole(tensor)] as const);
  const axes = mesh.axes.map((name) => [name, mesh.axis(name)] as const);
  const { mesh: refined, names } = meshFor(axes, tensors);
  return layoutOfTensors(refined, tensors, (axis, tensor) => {
    const found = names.get(axis);
    check(
      found,
      "BAD_ARGUMENT",
      where,
      () => `${tensor} is divided over "${axis.name}", which is no axis of the mesh.`,
      `Divide it over mesh.axis("${mesh.axes.at(-1)}").`,
    );
    return found;
  });
}

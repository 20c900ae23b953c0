/** The checkpoint's layout of a model with divided layers. */
import type { Layout, Split, TensorLayout } from "@opt/checkpoint";
import { check, show } from "@opt/core";
import { Module } from "@opt/nn";
import { dividedOver, splitBy } from "./fully-sharded/fully-sharded";
import { ProcessMesh } from "./mesh/mesh";
import { DividedLayer } from "./tensor-parallel/layers";

/**
 * The layout of a model on a mesh, for `saveCheckpoint` and `loadCheckpoint`: weights of divided layers along their axis, all others
 * whole on every rank. Optimizer state follows. Loading on another mesh is loading with the layout there: nothing else.
 *
 * @throws OptError BAD_ARGUMENT for a layer that is divided by other ranks than an axis of the mesh
 * @example
 * const grid = mesh(await connect(), { data: 1, model: 1 });
 * const net = new Sequential(new ColumnParallelLinear(4, 6, grid.axis("model")), new ReLU());
 * console.log(layoutOf(net, grid).tensors); // "0.weight": ["model", null], "0.bias": ["model"], "*": "replicate"
 */
export function layoutOf(model: Module, mesh: ProcessMesh): Layout {
  const where = "layoutOf";
  check(model instanceof Module, "BAD_ARGUMENT", where, () => `needs a module, got ${show(model)}.`);
  check(mesh instanceof ProcessMesh, "BAD_ARGUMENT", where, () => `needs a mesh, got ${show(mesh)}.`, "mesh(...)");
  const tensors: Record<string, TensorLayout> = {};
  const visit = (module: Module, prefix: string) => {
    if (module instanceof DividedLayer) {
      const axis = mesh.axes.find((name) => mesh.axis(name) === module.communicator);
      check(
        axis,
        "BAD_ARGUMENT",
        where,
        () => `${prefix}* is divided by "${module.communicator.name}", which is no axis of the mesh.`,
        `Make it with mesh.axis("${mesh.axes.at(-1)}").`,
      );
      for (const [name, splits] of Object.entries(module.splits(axis))) tensors[prefix + name] = splits;
    }
    for (const [name, child] of module.namedChildren()) visit(child, `${prefix}${name}.`);
  };
  visit(model, "");
  for (const [name, tensor] of model.namedTensors()) {
    const ranks = dividedOver(tensor);
    if (ranks === undefined) continue;
    const axis = mesh.axes.find((each) => mesh.axis(each) === ranks);
    check(
      axis,
      "BAD_ARGUMENT",
      where,
      () => `${name} is divided over "${ranks.name}", which is no axis of the mesh.`,
      `Divide it over mesh.axis("${mesh.axes[0]}").`,
    );
    tensors[name] = splitBy(axis, tensor, tensors[name] as readonly Split[] | undefined);
  }
  return { mesh: { shape: mesh.shape, axes: mesh.axes }, tensors: { ...tensors, "*": "replicate" } };
}

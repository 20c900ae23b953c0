/** Placements as a checkpoint's layout says them. */
import type { Layout, Mesh, Split, TensorLayout } from "@opt/checkpoint";
import type { MeshAxis, Tensor } from "@opt/core";

/**
 * Which ranks of a mesh have which part of each tensor.
 *
 * @param nameOf the axis of the mesh; it throws for one of other ranks
 */
export function layoutOfTensors(
  mesh: Mesh,
  tensors: Iterable<readonly [name: string, tensor: Tensor]>,
  nameOf: (axis: MeshAxis<Tensor>, name: string) => string,
): Layout {
  const entries: Record<string, TensorLayout> = {};
  for (const [name, { placement }] of tensors) {
    if (placement === null) continue;
    const axes = placement.shape.map((): string[] => []);
    for (const { axis, dim } of placement.cuts) axes[dim]!.push(nameOf(axis, name));
    const split = axes.map((names): Split => (names.length < 2 ? (names[0] ?? null) : names));
    entries[name] = axes.some(({ length }) => length > 1) ? { split, nested: true } : split;
  }
  return { mesh: { shape: mesh.shape, axes: mesh.axes }, tensors: { ...entries, "*": "replicate" } };
}

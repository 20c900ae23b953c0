/** Ranks in groups of neighbours: those of a group divide tensors, and the groups have copies of each other's. */
import type { Mesh } from "@opt/checkpoint";
import type { MeshAxis, Tensor } from "@opt/core";
import type { NamedTensors } from "../communicator/above";
import { Communicator } from "../communicator/communicator";
import { Group } from "../communicator/group";
import { axisOf } from "../placement/axis";

export interface Neighbours {
  /** The group of this rank. */
  readonly near: Communicator;
  /** The ranks at the same place of each group. */
  readonly copies: Communicator;
}

const known = new WeakMap<Communicator, Map<number, Neighbours>>();

/** Groups of `size` neighbours, always the same ones. All ranks make them in the same order; nothing is sent. */
export function neighboursOf(communicator: Communicator, size: number): Neighbours {
  const bySize = known.get(communicator) ?? new Map<number, Neighbours>();
  known.set(communicator, bySize);
  const made = bySize.get(size) ?? madeOf(communicator, size);
  bySize.set(size, made);
  return made;
}

function madeOf(communicator: Communicator, size: number): Neighbours {
  const { name, rank, group } = communicator;
  const { world, members } = group;
  const made = (ranks: readonly number[], named: string) =>
    new Communicator(new Group(world, named, ranks, world.nextMeshGroup++));
  const first = rank - (rank % size);
  const near = made(members.slice(first, first + size), name);
  return {
    near,
    copies: made(
      members.filter((_, i) => i % size === rank % size),
      `copies of ${name}`,
    ),
  };
}

/** A mesh of axes for a checkpoint's layout, and their names there: one whose neighbours divide some of the tensors is two. */
export function meshFor(
  axes: readonly (readonly [name: string, communicator: Communicator])[],
  tensors: NamedTensors,
): { mesh: Mesh; names: ReadonlyMap<MeshAxis<Tensor>, string> } {
  const cuts = new Set([...tensors].flatMap(([, { placement }]) => placement?.cuts.map(({ axis }) => axis) ?? []));
  const all = axes.flatMap(([name, communicator]): [string, Communicator][] => {
    const groups = [...(known.get(communicator)?.values() ?? [])].find(({ near }) => cuts.has(axisOf(near)));
    return groups === undefined
      ? [[name, communicator]]
      : [
          [`copies of ${name}`, groups.copies],
          [name, groups.near],
        ];
  });
  const mesh = { shape: all.map(([, { size }]) => size), axes: all.map(([name]) => name) };
  return { mesh, names: new Map(all.map(([name, communicator]) => [axisOf(communicator), name])) };
}

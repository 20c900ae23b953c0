/** Ranks in groups of neighbours: those of a group divide tensors, and the groups have copies of each other's. */
import type { Mesh } from "@opt/checkpoint";
import type { MeshAxis, Tensor } from "@opt/core";
import type { NamedTensors } from "../communicator/above";
import { Communicator } from "../communicator/communicator";
import { axisOf } from "../placement/axis";

export interface Neighbours {
  /** The group of this rank. */
  readonly near: Communicator;
  /** The ranks at the same place of each group. */
  readonly copies: Communicator;
}

const known = new WeakMap<Communicator, Map<number, Neighbours>>();

/** Groups of `size` neighbours, always the same ones. Nothing is sent. */
export function neighboursOf(communicator: Communicator, size: number): Neighbours {
  const bySize = known.get(communicator) ?? new Map<number, Neighbours>();
  known.set(communicator, bySize);
  const made = bySize.get(size) ?? madeOf(communicator, size);
  bySize.set(size, made);
  return made;
}

function madeOf(communicator: Communicator, size: number): Neighbours {
  const { name, rank, group } = communicator;
  const first = rank - (rank % size);
  const copies = group.members.filter((_, i) => i % size === rank % size);
  return {
    near: new Communicator(group.within(name, group.members.slice(first, first + size))),
    copies: new Communicator(group.within(`copies of ${name}`, copies)),
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

/** Ranks in a grid: each axis has communicators of its own. */
import type { Mesh } from "@opt/checkpoint";
import { check, show } from "@opt/core";
import { Communicator } from "../communicator/communicator";
import { Group } from "../communicator/group";

const WHERE = "mesh";

const meshes = new WeakMap<Communicator, ProcessMesh>();

/** The mesh of which a communicator is an axis. */
export const meshOf = (communicator: Communicator): ProcessMesh | undefined => meshes.get(communicator);

/** Ranks in a grid, counted row-major: the last axis is that of neighbours. It is also the `mesh` of a checkpoint's layout. */
export class ProcessMesh implements Mesh {
  readonly communicator: Communicator;
  readonly axes: readonly string[];
  readonly shape: readonly number[];
  /** This rank's position on each axis. */
  readonly coordinates: readonly number[];
  readonly #communicators: ReadonlyMap<string, Communicator>;

  /** @internal Use `mesh`. */
  constructor(communicator: Communicator, sizes: Readonly<Record<string, number>>) {
    this.communicator = communicator;
    this.axes = Object.keys(sizes);
    this.shape = Object.values(sizes);
    const strides = this.shape.map((_, i) => this.shape.slice(i + 1).reduce((a, b) => a * b, 1));
    const positionOf = (rank: number, axis: number) => Math.floor(rank / strides[axis]!) % this.shape[axis]!;
    this.coordinates = this.axes.map((_, axis) => positionOf(communicator.rank, axis));
    const { world, members } = communicator.group;
    communicator.group.note(`mesh ${JSON.stringify(sizes)}`);
    const first = world.nextMeshGroup;
    world.nextMeshGroup += this.axes.length;
    this.#communicators = new Map(
      this.axes.map((name, axis) => {
        const stride = strides[axis]!;
        const start = communicator.rank - this.coordinates[axis]! * stride;
        const mine = Array.from({ length: this.shape[axis]! }, (_, i) => members[start + i * stride]!);
        const made = new Communicator(new Group(world, name, mine, first + axis));
        meshes.set(made, this);
        return [name, made];
      }),
    );
  }

  /** The ranks that differ from this one in that axis alone, in its order. @throws OptError BAD_ARGUMENT */
  axis(name: string): Communicator {
    const found = this.#communicators.get(name);
    check(
      found,
      "BAD_ARGUMENT",
      WHERE,
      () => `there is no axis ${show(name)}.`,
      `Its axes are ${this.axes.join(", ")}.`,
    );
    return found;
  }
}

/**
 * Puts the ranks of `connect` into a grid. All ranks make the same meshes in the same order; nothing is sent.
 *
 * @param sizes extents by axis, outermost first; their product is the number of ranks
 * @throws OptError BAD_ARGUMENT; UNSUPPORTED for a communicator that `split` made
 * @example
 * const communicator = await connect();
 * const grid = mesh(communicator, { data: communicator.size, model: 1 });
 * await grid.axis("data").allReduce(tensor([1]));
 */
export function mesh(communicator: Communicator, sizes: Readonly<Record<string, number>>): ProcessMesh {
  const isOurs = communicator instanceof Communicator;
  check(isOurs, "BAD_ARGUMENT", WHERE, () => `needs a communicator, got ${show(communicator)}.`, "await connect()");
  const { world, members } = communicator.group;
  const isWhole = members.length === world.engine.size;
  check(
    isWhole,
    "UNSUPPORTED",
    WHERE,
    () => `a mesh is made of all ranks, got "${communicator.name}".`,
    "Give it the communicator of connect().",
  );
  const isRecord =
    typeof sizes === "object" && sizes !== null && !Array.isArray(sizes) && Object.keys(sizes).length > 0;
  const example = "{ data: 2, model: 2 }";
  check(isRecord, "BAD_ARGUMENT", WHERE, () => `needs extents by axis, got ${show(sizes)}.`, example);
  const extents = Object.values(sizes);
  const areCounts = extents.every((extent) => Number.isSafeInteger(extent) && extent > 0);
  check(areCounts, "BAD_ARGUMENT", WHERE, () => `extents must be whole numbers above 0, got ${show(sizes)}.`, example);
  const product = extents.reduce((a, b) => a * b, 1);
  check(
    product === communicator.size,
    "BAD_ARGUMENT",
    WHERE,
    () => `the extents must give ${communicator.size} ranks, got ${extents.join(" x ")} = ${product}.`,
  );
  return new ProcessMesh(communicator, sizes);
}

/** A model's tensors that no gradient belongs to: statistics that forward keeps, and weights that are frozen. One rank's become all ranks'. */
import { type Tensor, versionOf } from "@opt/core";
import type { Group } from "../communicator/group";
import { broadcastJson, gatherJson, treeOf } from "../communicator/messages";
import type { Operation } from "../communicator/operation";
import { bytesOf, overwrite } from "../communicator/staging";
import type { NamedParameter } from "./parameters";

/** What all ranks do: the buffers at these places are those of `root`. */
interface Verdict {
  readonly root: number;
  readonly places: readonly number[];
}

export class Buffers {
  /** How often the memory of each had been written to when all ranks had the same. */
  #versions: number[];

  constructor(readonly list: readonly NamedParameter[]) {
    this.#versions = this.#look();
  }

  /**
   * Every rank gets what was written to on any, as the first rank has it that wrote to one: rank 0 unless it had no samples. So frozen
   * weights never travel. The collectives begin now.
   *
   * @throws OptError as `Communicator.broadcast`
   */
  async share(group: Group, where: string, what: string): Promise<void> {
    const begin = (part: string) => group.begin(where, { what: `${what}, ${part}` });
    const [up, down, values] = [begin("which buffers"), begin("whose buffers"), begin("buffers")];
    const versions = this.#look();
    const own = versions.flatMap((version, i) => (version === this.#versions[i] ? [] : [i]));
    const all = await gatherJson(group, up, own);
    const { root, places } = await broadcastJson(group, down, all && verdictOf(all), 0);
    await moveBytes(
      group,
      values,
      root,
      places.map((i) => this.list[i]!.tensor),
    );
    this.#versions = this.#look();
  }

  #look(): number[] {
    return this.list.map(({ tensor }) => versionOf(tensor));
  }
}

function verdictOf(all: readonly (readonly number[])[]): Verdict {
  const root = all.findIndex((places) => places.length > 0);
  return { root: Math.max(root, 0), places: [...new Set(all.flat())].sort((a, b) => a - b) };
}

/** All in one message, whatever their dtypes. */
async function moveBytes(group: Group, operation: Operation, root: number, tensors: readonly Tensor[]): Promise<void> {
  const parts = tensors.map(async (tensor) => await bytesOf(tensor));
  const own = await Promise.all(parts);
  const bytes = new Uint8Array(own.reduce((sum, part) => sum + part.byteLength, 0));
  let end = 0;
  const places = own.map((part) => {
    const place = bytes.subarray(end, end + part.byteLength);
    end += part.byteLength;
    place.set(part);
    return place;
  });
  const { from, to } = treeOf(group, root);
  if (bytes.byteLength > 0) {
    if (from !== undefined) await operation.receive(from, 0, bytes);
    await Promise.allSettled(to.map((child) => operation.send(child, 0, bytes)));
  }
  await operation.all([]);
  if (from !== undefined) for (const [i, tensor] of tensors.entries()) overwrite(tensor, places[i]!);
}

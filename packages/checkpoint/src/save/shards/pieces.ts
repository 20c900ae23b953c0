/** Who writes what: the boxes that this process answers for, and their bytes at the moment they are wanted. */
import { check, OptError } from "@opt/core";
import { platform } from "#platform";
import { bytesPerElement } from "../../format/dtype";
import type { ShardBox } from "../../format/shard";
import type { LocalTensor } from "../../format/tensors";
import { type Box, elementsIn, sameBox, wholeOf } from "../../layout/box";
import { boxesOfRank, type Layout } from "../../layout/layout";
import { copyRegion, onlyRun } from "../../plan/runs";
import type { ThreadCopies } from "../../platform/platform";
import { allOf } from "../../stores/lanes";
import type { Scratch } from "../../stores/scratch";
import { type Assignment, assignWriters, type ShardableTensor } from "./writers";

export class Holdings {
  readonly tensors: readonly LocalTensor[];
  readonly #byName: ReadonlyMap<string, LocalTensor>;
  readonly #layout: Layout;
  /** Undefined where this process is every rank. */
  readonly #rank: number | undefined;
  /** Whether tensors are whole here, and not the rank's slices. */
  readonly #whole: boolean;
  #copies: ThreadCopies | undefined;
  #snapshot: ReadonlyMap<string, readonly Uint8Array[]> | undefined;

  constructor(tensors: readonly LocalTensor[], layout: Layout, rank: number | undefined, whole: boolean) {
    this.tensors = tensors;
    this.#byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
    this.#layout = layout;
    this.#rank = rank;
    this.#whole = whole || rank === undefined;
  }

  /** Starts reading every tensor at once, before the caller can change any; what follows uses the copies. */
  async snapshot(): Promise<void> {
    const copies = platform.threadCopies();
    this.#copies = copies;
    const snapshot = new Map<string, Uint8Array[]>();
    const waiting: Promise<void>[] = [];
    try {
      for (const { name, boxes, bytes } of this.tensors) {
        const copied: Uint8Array[] = [];
        snapshot.set(name, copied);
        for (let box = 0; box < (boxes?.length ?? 1); box++) {
          const read = bytes(box);
          const take = (there: Uint8Array) => {
            copied[box] = copies.copy(there);
          };
          // Of a hundred thousand tensors only those that must be waited for take a promise.
          if (read instanceof Promise) waiting.push(read.then(take));
          else take(read);
        }
      }
    } finally {
      await allOf(waiting);
    }
    this.#snapshot = snapshot;
  }

  /** Nobody reads the copies any more. */
  release(): void {
    this.#snapshot = undefined;
    this.#copies?.free();
  }

  /** What was written is of one moment. Throws CHANGED for a tensor that was overwritten since the save began. */
  checkUnchanged(): void {
    if (this.isCopied) return;
    for (const { name, version, versionNow } of this.tensors) {
      check(
        versionNow?.() === version,
        "CHANGED",
        `tensor ${JSON.stringify(name)}`,
        () => "was overwritten while it was saved.",
        "Await the save, or use async.",
      );
    }
  }

  get isCopied(): boolean {
    return this.#snapshot !== undefined;
  }

  /** Who writes which box of these tensors; explicit boxes are written by whoever has them. */
  assign<T extends ShardableTensor>(tensors: readonly T[]): Assignment<T>[] {
    const explicit = new Map(this.tensors.flatMap(({ name, boxes }) => (boxes ? [[name, boxes]] : [])));
    const laidOut = assignWriters(
      this.#layout,
      tensors.filter(({ name }) => !explicit.has(name)),
    );
    const self = this.#rank ?? 0;
    for (const tensor of tensors) {
      for (const box of explicit.get(tensor.name) ?? []) {
        if (elementsIn(box) > 0) laidOut.push({ tensor, box, writer: self, ranks: [self] });
      }
    }
    return laidOut;
  }

  /** What a rank hands over must be what the layout says it holds. Throws BAD_SHAPE. */
  checkSlice(tensor: ShardableTensor, rank: number): void {
    const { boxes, shape: local } = this.#byName.get(tensor.name)!;
    if (boxes || this.#whole) return;
    const [box, ...more] = boxesOfRank(this.#layout, tensor, rank);
    const fitsBox = box && more.length === 0 && box.size.every((length, d) => length === local[d]);
    if (fitsBox || (!box && local.includes(0))) return;
    const wanted = box && more.length === 0 ? `[${box.size}]` : `${more.length + (box ? 1 : 0)} boxes`;
    const problem = `rank ${rank} must hold ${wanted} of [${tensor.shape}], got [${local}].`;
    throw new OptError("BAD_SHAPE", `tensor ${JSON.stringify(tensor.name)}`, problem, "Fix the slice or the layout.");
  }

  /** The bytes of a box, valid until `scratch` is used again; without one, for good. */
  bytes({ tensor, box }: Assignment<LocalTensor>, scratch?: Scratch): Uint8Array | Promise<Uint8Array> {
    const index = tensor.boxes?.findIndex((one) => sameBox(one, box)) ?? 0;
    const all = this.#snapshot?.get(tensor.name)?.[index] ?? tensor.bytes(index);
    if (tensor.boxes || !this.#whole) return all;
    const whole = wholeOf(tensor.shape);
    const cut = (bytes: Uint8Array) => cutOut(bytes, whole, box, bytesPerElement(tensor.dtype), scratch);
    return all instanceof Promise ? all.then(cut) : cut(all);
  }
}

export function bytesOf({ tensor, box }: ShardBox): number {
  return elementsIn(box) * bytesPerElement(tensor.dtype);
}

export function bytesOfAll(boxes: readonly ShardBox[]): number {
  return boxes.reduce((sum, one) => sum + bytesOf(one), 0);
}

/** A box out of a larger one, copied only where it does not lie there in one piece. */
function cutOut(bytes: Uint8Array, whole: Box, box: Box, elementBytes: number, scratch?: Scratch): Uint8Array {
  const length = elementsIn(box) * elementBytes;
  const only = onlyRun(whole, box, box, elementBytes);
  if (only) return bytes.subarray(only.from, only.from + length);
  const cut = scratch?.take(length) ?? new Uint8Array(length);
  copyRegion(whole, bytes, box, cut, box, elementBytes);
  return cut;
}

/** The tensors that this process holds, and the bytes of their boxes at the moment they are wanted. */
import { check } from "@opt/core";
import { platform } from "#platform";
import { bytesPerElement } from "../../format/dtype";
import type { LocalTensor } from "../../format/tensors";
import { sameBox, wholeOf } from "../../layout/box";
import { cutOut } from "../../plan/runs";
import type { ThreadCopies } from "../../platform/platform";
import { allOf } from "../../stores/lanes";
import type { Scratch } from "../../stores/scratch";
import type { Assignment } from "./plan";

export class Holdings {
  readonly tensors: readonly LocalTensor[];
  readonly #byName: ReadonlyMap<string, LocalTensor>;
  /** Whether tensors are whole here, and not the rank's slices. */
  readonly #isWhole: boolean;
  #copies: ThreadCopies | undefined;
  #snapshot: ReadonlyMap<string, readonly Uint8Array[]> | undefined;

  constructor(tensors: readonly LocalTensor[], isWhole: boolean) {
    this.tensors = tensors;
    this.#byName = new Map(tensors.map((tensor) => [tensor.name, tensor]));
    this.#isWhole = isWhole;
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

  release(): void {
    this.#snapshot = undefined;
    this.#copies?.free();
  }

  get isCopied(): boolean {
    return this.#snapshot !== undefined;
  }

  /** What was written is of one moment. @throws OptError CHANGED for a tensor that was overwritten since the save began */
  checkUnchanged(): void {
    if (this.isCopied) return;
    for (const { name, version, versionNow } of this.tensors) {
      const where = `tensor ${JSON.stringify(name)}`;
      check(
        versionNow?.() === version,
        "CHANGED",
        where,
        () => "was overwritten while it was saved.",
        "Await the save, or use async.",
      );
    }
  }

  /** The bytes of a box, valid until `scratch` is used again; without one, for good. */
  bytes({ tensor: { name }, box }: Assignment, scratch?: Scratch): Uint8Array | Promise<Uint8Array> {
    const tensor = this.#byName.get(name)!;
    const index = tensor.boxes?.findIndex((one) => sameBox(one, box)) ?? 0;
    const all = this.#snapshot?.get(name)?.[index] ?? tensor.bytes(index);
    if (tensor.boxes || !this.#isWhole) return all;
    const whole = wholeOf(tensor.shape);
    const make = (length: number) => scratch?.take(length) ?? new Uint8Array(length);
    const cut = (bytes: Uint8Array) => cutOut(whole, bytes, box, bytesPerElement(tensor.dtype), make);
    return all instanceof Promise ? all.then(cut) : cut(all);
  }
}

/** Lists of where tensors lie, kept on the device: a launch that comes again unchanged uploads nothing. */
import type { Backend, Memory, Slice } from "@opt/core/backend";

interface Table {
  readonly words: Uint32Array;
  readonly slice: Slice;
}

/** Lists of one kernel that are kept. Steps come round in a cycle of few. */
const KEPT = 8;

export class Tables {
  readonly #byOwner = new WeakMap<object, Table[]>();

  constructor(private readonly backend: Pick<Backend, "allocate" | "free" | "write">) {}

  find(owner: object, words: Uint32Array): Slice {
    let tables = this.#byOwner.get(owner);
    if (tables === undefined) {
      tables = [];
      this.#byOwner.set(owner, tables);
    }
    const at = tables.findIndex((table) => equal(table.words, words));
    const table = at < 0 ? this.#make(words) : tables.splice(at, 1)[0]!;
    tables.unshift(table);
    if (tables.length > KEPT) this.backend.free(tables.pop()!.slice.memory);
    return table.slice;
  }

  #make(words: Uint32Array): Table {
    const memory: Memory = this.backend.allocate(words.byteLength);
    this.backend.write(memory, 0, new Uint8Array(words.buffer, words.byteOffset, words.byteLength));
    return { words, slice: { memory, byteOffset: 0, length: words.length } };
  }
}

function equal(a: Uint32Array, b: Uint32Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

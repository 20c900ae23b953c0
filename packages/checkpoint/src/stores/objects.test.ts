/** Stores of objects hold what was written and finished, and nothing else, after any writes, discards and removals. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { randomBytes } from "../../testing/fixtures";
import { memoryFileSystem } from "./memory";
import { opfsFileSystem } from "./opfs";

/** A browser's folder. Its files have what was written when their stream is closed. */
class Folder {
  readonly kind = "directory";
  readonly name = "";
  readonly #inside = new Map<string, Folder | object>();

  #get<T extends object>(name: string, create: boolean, isFolder: boolean, make: () => T): T {
    const found = this.#inside.get(name) ?? (create ? make() : undefined);
    if (found === undefined) throw new DOMException(name, "NotFoundError");
    if (found instanceof Folder !== isFolder) throw new DOMException(name, "TypeMismatchError");
    this.#inside.set(name, found);
    return found as T;
  }

  async getDirectoryHandle(name: string, { create = false } = {}): Promise<Folder> {
    return this.#get(name, create, true, () => new Folder());
  }

  async getFileHandle(name: string, { create = false } = {}) {
    return this.#get(name, create, false, () => {
      let data = new Uint8Array(0);
      const createWritable = async () => {
        let next = new Uint8Array(0);
        const put = (bytes: Uint8Array, position: number) => {
          const longer = new Uint8Array(Math.max(next.length, position + bytes.length));
          longer.set(next);
          longer.set(bytes, position);
          next = longer;
        };
        return {
          write: async (given: Uint8Array | { position: number; data: Uint8Array }) =>
            given instanceof Uint8Array ? put(given, next.length) : put(given.data, given.position),
          async close() {
            data = next;
          },
          abort: async () => {},
        };
      };
      return { kind: "file", getFile: async () => new File([data], name), createWritable };
    });
  }

  async removeEntry(name: string) {
    const found = this.#inside.get(name);
    if (found === undefined) throw new DOMException(name, "NotFoundError");
    const isFull = found instanceof Folder && found.#inside.size > 0;
    if (isFull) throw new DOMException(name, "InvalidModificationError");
    this.#inside.delete(name);
  }

  async *entries() {
    yield* this.#inside;
  }
}

const PATHS = ["a", "f/b", "f/g/c"];
const command = fc.record({
  ...{ path: fc.constantFrom(...PATHS), end: fc.constantFrom("finish", "discard", "leave", "remove") },
  size: fc.oneof({ weight: 9, arbitrary: fc.integer({ min: 1, max: 9 }) }, fc.constant((4 << 20) + 3)),
});

it.each([
  ["memoryFileSystem", memoryFileSystem],
  ["opfsFileSystem", () => opfsFileSystem(new Folder())],
] as const)("%s", async (_, make) => {
  await fc.assert(
    fc.asyncProperty(fc.array(command), async (commands) => {
      const fileSystem = make();
      const expected = new Map<string, Uint8Array>();
      for (const [turn, { path, end, size }] of commands.entries()) {
        if (end === "remove") {
          await fileSystem.remove(path);
          expected.delete(path);
        } else {
          const data = randomBytes(size, turn);
          const file = await fileSystem.open(path, "create", size);
          await file.write(data.subarray(0, size >> 1), 0);
          await file.write(data.subarray(size >> 1), size >> 1);
          if (end === "finish") await file.finish();
          if (end === "finish") expected.set(path, data.slice());
          data.fill(0); // who writes uses the memory again
          if (end === "discard") await fileSystem.unfinished!.discard(path);
          await file.close();
        }
        for (const path of PATHS) {
          const data = expected.get(path);
          expect(await fileSystem.kind(path), path).toBe(data && "file");
          if (data === undefined) continue;
          const [file, bytes] = [await fileSystem.open(path, "read"), new Uint8Array(data.length + 1)];
          expect([await file.size(), await file.read(bytes, 0)]).toEqual([data.length, data.length]);
          expect(Buffer.compare(bytes.subarray(0, data.length), data)).toBe(0);
          expect(
            (await fileSystem.list(path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : "")).length,
          ).toBeGreaterThan(0);
        }
      }
    }),
    { seed: 1, numRuns: 30 },
  );
});

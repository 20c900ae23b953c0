import type { FileSystem, OpenFile } from "../../src/stores/file-system";

export interface MemoryFiles extends FileSystem {
  /** The longest single read that anybody asked for. */
  readonly longestRead: () => number;
  /** Bytes read so far, of all files together. */
  readonly bytesRead: () => number;
}

/** Files in memory under `/root`; a path outside of it is a failure of the test, not of the checkpoint. */
export function memoryFiles(files: Readonly<Record<string, Uint8Array>>): MemoryFiles {
  let longest = 0;
  let total = 0;
  const inside = (path: string): string => {
    if (path !== "/root" && !path.startsWith("/root/")) throw new TypeError(`${path} is outside of the checkpoint`);
    return path.slice("/root/".length);
  };
  const failed = (code: string): Error => Object.assign(new Error(code), { code });
  const reject = async (): Promise<never> => {
    throw failed("EROFS");
  };
  return {
    longestRead: () => longest,
    bytesRead: () => total,
    resolve: (path) => path,
    async open(path) {
      const bytes = files[inside(path)];
      if (bytes === undefined) throw failed("ENOENT");
      const file: OpenFile = {
        async read(target, position) {
          longest = Math.max(longest, target.byteLength);
          const part = bytes.subarray(position, position + target.byteLength);
          target.set(part);
          total += part.byteLength;
          return part.byteLength;
        },
        write: reject,
        size: async () => bytes.byteLength,
        finish: reject,
        close: async () => undefined,
      };
      return file;
    },
    async list(path) {
      const prefix = path === "/root" ? "" : `${inside(path)}/`;
      const names = Object.keys(files).filter((name) => name.startsWith(prefix));
      const parts = names.map((name) => name.slice(prefix.length).split("/"));
      const entries = new Map(parts.map(([name, ...rest]) => [name!, rest.length === 0 ? "file" : "folder"] as const));
      return [...entries].map(([name, kind]) => ({ name, kind }));
    },
    async kind(path) {
      const name = path === "/root" ? "" : inside(path);
      if (files[name] !== undefined) return "file";
      return name === "" || Object.keys(files).some((file) => file.startsWith(`${name}/`)) ? "folder" : undefined;
    },
    makeFolder: reject,
    modified: async () => 0,
    rename: reject,
    remove: reject,
    syncFolder: reject,
  };
}

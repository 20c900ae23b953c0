/** Opens the place of an address as a store of files, each of which keeps the version it had when it was first asked for. */
import { check } from "@opt/core";
import { isCount } from "../layout/counts";
import { localFileSystem } from "../platform/local";
import type { FileSystem } from "../stores/file-system";
import { type ObjectStat, objectFileSystem } from "../stores/objects";
import { join } from "../stores/path";
import { environment, type RemoteOptions } from "./address";
import { cached } from "./cache";
import { hubFiles } from "./hub";
import { webFiles } from "./web";

/** @throws OptError BAD_ARGUMENT for an address that names nothing, MISSING, IO */
export async function openRemote(
  address: string,
  options: RemoteOptions,
): Promise<{ readonly path: string; readonly fileSystem: FileSystem }> {
  const { cache = false, cacheLimit: limit, signal } = options;
  const rule = () => `cacheLimit must be a count of bytes, got ${limit}.`;
  check(limit === undefined || isCount(limit), "BAD_ARGUMENT", address, rule, "For example 10 * 2 ** 30.");
  const { name, key, store } = /^hf:/i.test(address) ? await hubFiles(address, options) : webFiles(address, options);
  const kept = () => ({ fileSystem: localFileSystem, path: cache === true ? defaultFolder() : `${cache}`, limit });
  const { read } = cache ? cached(store, name, kept()) : store;
  const stats = new Map<string, Promise<ObjectStat | undefined>>();
  const below = (path: string) => path.slice(name.length + 1);
  const fileSystem = objectFileSystem({
    stat(path) {
      const known = stats.get(path) ?? store.stat(below(path));
      stats.set(path, known);
      known.catch(() => stats.delete(path));
      return known;
    },
    async read(path, ...range) {
      signal?.throwIfAborted();
      await read(below(path), ...range);
    },
    list: (path) => store.list!(below(path)),
  });
  return { path: join(name, key), fileSystem };
}

function defaultFolder(): string {
  const home = environment("HOME") ?? environment("USERPROFILE");
  return join(environment("XDG_CACHE_HOME") ?? join(home ?? "", ".cache"), "opt-checkpoint");
}

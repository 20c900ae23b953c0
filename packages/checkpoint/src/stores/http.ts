/** Checkpoints on a web server, read by ranges of bytes: what is not asked for never travels. Nothing is written. */
import { check, checkOptions } from "@opt/core";
import type { FileSystem } from "./file-system";
import { type ObjectStore, objectFileSystem } from "./objects";

export interface HttpOptions {
  /** Sent with every request, e.g. `{ authorization: "Bearer ..." }`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How often to repeat a request that failed for a moment. Default 3. */
  readonly retries?: number;
}

const WHERE = "httpFileSystem";

/**
 * A folder that a web server gives out, for the `fileSystem` option; paths are relative to `base`. Servers do not list folders, so a step is
 * named by its own folder, not by its run's.
 *
 * @throws OptError BAD_ARGUMENT for what is no http(s) URL
 * @example
 * const fileSystem = httpFileSystem("https://example.org/runs/a/");
 * const load = () => loadCheckpoint("step-00000042", { fileSystem });
 */
export function httpFileSystem(base: string | URL, options: HttpOptions = {}): FileSystem {
  const root = URL.canParse(base) ? new URL(base) : undefined;
  const isHttp = root !== undefined && /^https?:$/.test(root.protocol);
  check(isHttp, "BAD_ARGUMENT", WHERE, () => `base must be an http(s) URL, got ${base}.`);
  if (!root.pathname.endsWith("/")) root.pathname += "/";
  checkOptions(WHERE, options, { headers: "object", retries: "number" });
  const { headers = {}, retries } = options;

  let objects: Promise<ObjectStore> | undefined;
  const loaded = () => {
    objects ??= import("./http-objects").then(({ httpObjects }) =>
      httpObjects(root, { headers, retries, cure: "Check the address and headers." }),
    );
    return objects;
  };
  return objectFileSystem({
    stat: async (key) => (await loaded()).stat(key),
    read: async (...range) => (await loaded()).read(...range),
    list: async (folder) => (await loaded()).list!(folder),
  });
}

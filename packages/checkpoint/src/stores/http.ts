/** Checkpoints on a web server, read by ranges of bytes: what is not asked for never travels. Nothing is written. */
import { check, checkOptions, OptError } from "@opt/core";
import type { FileSystem, OpenFile } from "./file-system";

export interface HttpOptions {
  /** Sent with every request, e.g. `{ authorization: "Bearer ..." }`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** How often a request is made anew that failed for no lasting reason; 3 without it. */
  readonly retries?: number;
}

const WHERE = "httpFileSystem";

/**
 * A folder that a web server gives out, for the `fileSystem` option; paths are relative to `base`. Servers do not list folders, so a step is
 * named by its own folder, not by its run's. Throws BAD_ARGUMENT for what is no http(s) URL.
 *
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
  const { headers = {}, retries = 3 } = options;

  const request = async (path: string, method: "GET" | "HEAD", range?: string): Promise<Response> => {
    const url = new URL(path.replace(/^\/+/, "").split("/").map(encodeURIComponent).join("/"), root);
    for (let tries = 0; ; tries++) {
      const asked = { method, headers: { ...headers, ...(range ? { range } : {}) } };
      const response = await fetch(url, asked).catch((error: unknown) => error as Error);
      const isLasting = response instanceof Response && response.status < 500 && response.status !== 429;
      if (isLasting) return response;
      if (response instanceof Response) await response.body?.cancel();
      if (tries < retries) continue;
      const problem = response instanceof Response ? `status ${response.status}` : response.message;
      throw new OptError("IO", url.href, `the server must answer, got ${problem}.`, "Try again later.");
    }
  };

  /** Undefined where nothing is there. */
  const sizeOf = async (path: string): Promise<number | undefined> => {
    const response = await request(path, "HEAD");
    if (response.status === 404 || response.status === 410) return undefined;
    check(
      response.ok,
      "IO",
      response.url,
      () => `status ${response.status} is not 200.`,
      "Check the address and headers.",
    );
    const length = response.headers.get("content-length");
    check(length !== null, "UNSUPPORTED", response.url, () => "the server does not say how long the file is.");
    return Number(length);
  };

  const open = async (path: string, mode: "read" | "create" | "createNew" | "update"): Promise<OpenFile> => {
    if (mode !== "read") throw readOnly(path);
    const size = await sizeOf(path);
    if (size === undefined) throw Object.assign(new Error(`${path} is not there`), { code: "ENOENT" });
    return {
      async read(target, position) {
        const end = Math.min(position + target.length, size);
        if (end <= position) return 0;
        const response = await request(path, "GET", `bytes=${position}-${end - 1}`);
        const isRange = response.status === 206;
        check(isRange, "UNSUPPORTED", response.url, () => `ranges are needed, got status ${response.status}.`);
        const bytes = new Uint8Array(await response.arrayBuffer());
        const isAsked = bytes.length === end - position;
        check(isAsked, "IO", response.url, () => `${end - position} bytes were asked for, got ${bytes.length}.`);
        target.set(bytes);
        return bytes.length;
      },
      write: () => Promise.reject(readOnly(path)),
      size: async () => size,
      sync: async () => {},
      close: async () => {},
    };
  };

  const MANIFEST = "manifest.json";
  const isStep = async (path: string) => (await sizeOf(`${path}/${MANIFEST}`)) !== undefined;
  const refuse = async (path: string): Promise<never> => {
    throw readOnly(path);
  };
  return {
    open,
    list: async (path) => ((await isStep(path)) ? [{ name: MANIFEST, kind: "file" }] : []),
    kind: async (path) => {
      if (/^step-\d+$/.test(path.split("/").at(-1)!)) return (await isStep(path)) ? "folder" : undefined;
      return (await sizeOf(path)) === undefined ? undefined : "file";
    },
    modified: async () => Date.now(),
    makeFolder: refuse,
    rename: refuse,
    remove: refuse,
    syncFolder: refuse,
  };
}

function readOnly(path: string): Error {
  return Object.assign(new Error(`${path} is on a web server`), { code: "EROFS" });
}

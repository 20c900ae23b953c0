/** Checkpoints on a web server, read by ranges of bytes: what is not asked for never travels. Nothing is written. */
import { check, checkOptions, OptError } from "@opt/core";
import type { FileSystem } from "./file-system";
import { objectFileSystem } from "./objects";

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
    const url = new URL(path.split("/").map(encodeURIComponent).join("/"), root);
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

  return objectFileSystem({
    async stat(key) {
      const response = await request(key, "HEAD");
      if (response.status === 404 || response.status === 410) return undefined;
      const problem = () => `status ${response.status} is not 200.`;
      check(response.ok, "IO", response.url, problem, "Check the address and headers.");
      const length = response.headers.get("content-length");
      check(length !== null, "UNSUPPORTED", response.url, () => "the server does not say how long the file is.");
      return { byteLength: Number(length), modified: Date.parse(response.headers.get("last-modified") ?? "") || 0 };
    },
    async read(key, target, position) {
      const end = position + target.length;
      const response = await request(key, "GET", `bytes=${position}-${end - 1}`);
      const isRange = response.status === 206;
      check(isRange, "UNSUPPORTED", response.url, () => `ranges are needed, got status ${response.status}.`);
      const bytes = new Uint8Array(await response.arrayBuffer());
      const isAsked = bytes.length === target.length;
      check(isAsked, "IO", response.url, () => `${target.length} bytes were asked for, got ${bytes.length}.`);
      target.set(bytes);
    },
  });
}

/** Checkpoints on a web server, read by ranges of bytes: what is not asked for never travels. Nothing is written. */
import { check, checkOptions, OptError } from "@opt/core";
import type { FileSystem } from "./file-system";
import { objectFileSystem } from "./objects";
import { fillFrom } from "./response";

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

  /** What `take` makes of the answer; asked again where none comes, or breaks off. */
  const request = async <T>(
    path: string,
    asked: RequestInit,
    take: (response: Response) => T | Promise<T>,
  ): Promise<T> => {
    const url = new URL(path.split("/").map(encodeURIComponent).join("/"), root);
    for (let tries = 0; ; tries++) {
      try {
        const response = await fetch(url, { ...asked, headers: { ...headers, ...asked.headers } });
        if (response.status < 500 && response.status !== 429) return await take(response);
        await response.body?.cancel();
        throw new Error(`status ${response.status}`);
      } catch (error) {
        if (error instanceof OptError) throw error;
        if (tries < retries) continue;
        const problem = `the server must answer, got ${(error as Error).message}.`;
        throw new OptError("IO", url.href, problem, "Try again later.");
      }
    }
  };

  return objectFileSystem({
    stat: (key) =>
      request(key, { method: "HEAD" }, (response) => {
        if (response.status === 404 || response.status === 410) return undefined;
        const problem = () => `status ${response.status} is not 200.`;
        check(response.ok, "IO", response.url, problem, "Check the address and headers.");
        const length = response.headers.get("content-length");
        check(length !== null, "UNSUPPORTED", response.url, () => "the server does not say how long the file is.");
        return { byteLength: Number(length), modified: Date.parse(response.headers.get("last-modified") ?? "") || 0 };
      }),
    read: (key, target, position) => {
      const range = `bytes=${position}-${position + target.length - 1}`;
      return request(key, { headers: { range } }, async (response) => {
        const isRange = response.status === 206;
        if (!isRange) await response.body?.cancel();
        check(isRange, "UNSUPPORTED", response.url, () => `ranges are needed, got status ${response.status}.`);
        const length = await fillFrom(response, target);
        const isAsked = length === target.length;
        check(isAsked, "IO", response.url, () => `${target.length} bytes were asked for, got ${length}.`);
      });
    },
  });
}

/** What a web server answers: lengths, and ranges of bytes. Loaded when the first is asked for. */
import { check, OptError } from "@opt/core";
import type { ObjectStore } from "./objects";
import { fillFrom } from "./response";

/** Files below `root`, asked for again where no answer comes or one breaks off. Throws IO, UNSUPPORTED. */
export function httpObjects(root: URL, headers: Readonly<Record<string, string>>, retries: number): ObjectStore {
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

  return {
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
        const whole = () => `ranges are needed, got status ${response.status}.`;
        const advice = "Let the server answer Range requests, or fetch the file and load its Blob.";
        check(isRange, "UNSUPPORTED", response.url, whole, advice);
        const length = await fillFrom(response, target);
        const isAsked = length === target.length;
        check(isAsked, "IO", response.url, () => `${target.length} bytes were asked for, got ${length}.`);
      });
    },
  };
}

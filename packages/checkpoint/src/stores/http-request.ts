/** Requests to a web server, sent again where no answer comes or one breaks off. */
import { OptError } from "@opt/core";
import { sleep } from "./lanes";

/** Milliseconds until a request is repeated; the next time twice as long. */
const FIRST_WAIT = 100;

/** What is no failure of the way to the server. */
const LASTING = new Set<unknown>(["ENOENT", "ESTALE"]);

export interface Asking {
  readonly headers: Readonly<Record<string, string>>;
  /** How often to repeat a request that failed for a moment. Default 3. */
  readonly retries?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** What helps where the server forbids reading. */
  readonly cure: string;
}

/** What `take` makes of the answer. @throws OptError IO; what `signal` was aborted with */
export type Ask = <T>(url: URL, asked: RequestInit, take: (response: Response) => T | Promise<T>) => Promise<T>;

/** For messages: a query may hold secrets. */
export function nameOf({ origin, pathname }: URL): string {
  return origin + pathname;
}

export function asking({ headers, retries = 3, signal, cure }: Asking): Ask {
  return async (url, asked, take) => {
    for (let tries = 0; ; tries++) {
      if (tries > 0) await sleep(FIRST_WAIT * 2 ** (tries - 1));
      signal?.throwIfAborted();
      try {
        const response = await fetch(url, {
          ...asked,
          signal: signal ?? null,
          headers: { ...headers, ...asked.headers },
        });
        const { status } = response;
        // Signed addresses answer GET alone.
        const isForbidden = (status === 401 || status === 403) && asked.method !== "HEAD";
        if (!isForbidden && status < 500 && status !== 429) return await take(response);
        await response.body?.cancel();
        if (!isForbidden) throw new Error(`status ${status}`);
        throw new OptError("IO", nameOf(url), `the server must allow reading, got status ${status}.`, cure);
      } catch (error) {
        signal?.throwIfAborted();
        if (error instanceof OptError || LASTING.has((error as NodeJS.ErrnoException).code)) throw error;
        if (tries < retries) continue;
        const problem = `the server must answer, got ${(error as Error).message}.`;
        throw new OptError("IO", nameOf(url), problem, "Try again later.");
      }
    }
  };
}

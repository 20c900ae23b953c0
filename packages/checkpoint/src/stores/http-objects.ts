/** What a web server answers: lengths, and ranges of bytes. Loaded when the first is asked for. */
import { check, OptError } from "@opt/core";
import { sleep } from "./lanes";
import { fail, MARKER, type ObjectStat, type ObjectStore } from "./objects";
import { basename, join } from "./path";
import { fillFrom } from "./response";

/** Milliseconds until a request is repeated; the next time twice as long. */
const FIRST_WAIT = 100;

/** What is no failure of the way to the server. */
const LASTING = new Set<string | undefined>(["ENOENT", "ESTALE"]);

/** As the file lies there: `fetch` asks so for ranges by itself, and browsers let nobody else say it. */
const PLAIN = { "accept-encoding": "identity" };

const USE_RANGES = "Let the server answer Range requests, or fetch the file and load its Blob.";

/** Files below `root`, asked for again where no answer comes or one breaks off. @throws OptError IO, MISSING, UNSUPPORTED */
export function httpObjects(root: URL, headers: Readonly<Record<string, string>>, retries: number): ObjectStore {
  const addressOf = (key: string) => new URL(key.split("/").map(encodeURIComponent).join("/"), root);

  /** What `take` makes of the answer; asked again where none comes, or breaks off. */
  const request = async <T>(
    key: string,
    asked: RequestInit,
    take: (response: Response) => T | Promise<T>,
  ): Promise<T> => {
    const url = addressOf(key);
    for (let tries = 0; ; tries++) {
      if (tries > 0) await sleep(FIRST_WAIT * 2 ** (tries - 1));
      try {
        const response = await fetch(url, { ...asked, headers: { ...headers, ...asked.headers } });
        if (response.status < 500 && response.status !== 429) return await take(response);
        await response.body?.cancel();
        throw new Error(`status ${response.status}`);
      } catch (error) {
        if (error instanceof OptError || LASTING.has((error as NodeJS.ErrnoException).code)) throw error;
        if (tries < retries) continue;
        const problem = `the server must answer, got ${(error as Error).message}.`;
        throw new OptError("IO", url.href, problem, "Try again later.");
      }
    }
  };

  const range = <T>(key: string, begin: number, end: number, take: (response: Response) => T | Promise<T>) =>
    request(key, { headers: { range: `bytes=${begin}-${end - 1}` } }, take);

  const stat: ObjectStore["stat"] = async (key) => {
    const told = await request(key, { method: "HEAD", headers: PLAIN }, (response) => {
      if (response.status === 404 || response.status === 410) return { isThere: false };
      const length = response.headers.get("content-length");
      // Of what it would pack, a server tells the packed length or none; some answer only GET.
      const isPlain = response.ok && length !== null && !isEncoded(response);
      return { isThere: true, stat: isPlain ? statOf(response, Number(length)) : undefined };
    });
    if (told.stat || !told.isThere) return told.stat;
    return range(key, 0, 1, async (response) => {
      await response.body?.cancel();
      check(
        response.ok || response.status === 416,
        "IO",
        response.url,
        () => `status ${response.status} is not 200.`,
        "Check the address and headers.",
      );
      const { length } = rangeOf(response);
      check(
        length !== undefined,
        "UNSUPPORTED",
        response.url,
        () => "the server does not say how long the file is.",
        USE_RANGES,
      );
      return statOf(response, length);
    });
  };

  return {
    stat,
    read: (key, target, position, { byteLength, version }) =>
      range(key, position, position + target.length, async (response) => {
        const { status, url } = response;
        const isRange = status === 206 && !isEncoded(response);
        if (!isRange) await response.body?.cancel();
        if (status === 404 || status === 410) throw fail("ENOENT", `${url} is not there any more`);
        const { begin = position, length = byteLength } = rangeOf(response);
        const said = versionOf(response);
        const isOther = version !== undefined && said !== undefined && said !== version;
        if (status === 416 || isOther || length !== byteLength) throw fail("ESTALE", `${url} has been replaced`);
        check(
          isRange,
          "UNSUPPORTED",
          url,
          () => `ranges are needed, got status ${status}${isRange || status !== 206 ? "" : ", packed"}.`,
          USE_RANGES,
        );
        const count = await fillFrom(response, target);
        const isAsked = count === target.length && begin === position;
        check(
          isAsked,
          "IO",
          url,
          () => `${target.length} bytes from ${position} were asked for, got ${count} from ${begin}.`,
          "Look at the server, and at what stands before it.",
        );
      }),
    async list(folder) {
      if (basename(folder) === MARKER) return []; // who asks so wants to know whether it is there
      if (await stat(join(folder, MARKER))) return [{ name: MARKER, kind: "file" }];
      const problem = "no file is there, and web servers do not list folders.";
      throw new OptError("MISSING", addressOf(folder).href, problem, "Name a step's own folder, or a file.");
    },
  };
}

function statOf(response: Response, byteLength: number): ObjectStat {
  const modified = Date.parse(response.headers.get("last-modified") ?? "") || 0;
  return { byteLength, modified, version: versionOf(response) };
}

/** Where the answer begins in the file and how long that is, as far as the server says, and lets a page see it. */
function rangeOf(response: Response): { begin?: number; length?: number } {
  const [, begin, length] =
    /^bytes (?:(\d+)-\d+|\*)\/(\d+|\*)$/.exec(response.headers.get("content-range") ?? "") ?? [];
  const isKnown = length !== undefined && length !== "*";
  return { ...(begin && { begin: Number(begin) }), ...(isKnown && { length: Number(length) }) };
}

/** Tells this file from the one that takes its name, packed or not. */
function versionOf({ headers }: Response): string | undefined {
  const tag = headers
    .get("etag")
    ?.replace(/^W\//, "")
    .replace(/-(gzip|br|zstd|deflate)"$/, '"');
  return tag ?? headers.get("last-modified") ?? undefined;
}

function isEncoded({ headers }: Response): boolean {
  return !["", "identity"].includes(headers.get("content-encoding") ?? "");
}

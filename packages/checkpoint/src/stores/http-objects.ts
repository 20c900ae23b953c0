/** What a web server answers: lengths, and ranges of bytes. Loaded when the first is asked for. */
import { check, OptError } from "@opt/core";
import { type Asking, asking, nameOf } from "./http-request";
import { fail, MARKER, type ObjectStat, type ObjectStore } from "./objects";
import { basename, join } from "./path";
import { fillFrom } from "./response";

/** As the file lies there: `fetch` asks so for ranges by itself, and browsers let nobody else say it. */
const PLAIN = { "accept-encoding": "identity" };

const USE_RANGES = "Let the server answer Range requests, or fetch the file and load its Blob.";

/**
 * Files below `root`, whose query goes along with each. `takesWhole`: where the server ignores ranges, a file is fetched once and held.
 *
 * @throws OptError IO, MISSING, UNSUPPORTED
 */
export function httpObjects(root: URL, how: Asking, takesWhole = false): ObjectStore {
  const ask = asking(how);
  const whole = new Map<string, Promise<Uint8Array>>();
  const addressOf = (key: string) => {
    const url = new URL(key.split("/").map(encodeURIComponent).join("/"), root);
    url.search = root.search;
    return url;
  };

  const request = <T>(key: string, asked: RequestInit, take: (response: Response) => T | Promise<T>) =>
    ask(addressOf(key), asked, take);

  const range = <T>(key: string, begin: number, end: number, take: (response: Response) => T | Promise<T>) =>
    request(key, { headers: { range: `bytes=${begin}-${end - 1}` } }, take);

  const stat: ObjectStore["stat"] = async (key) => {
    const told = await request(key, { method: "HEAD", headers: PLAIN }, (response) => {
      if (response.status === 404 || response.status === 410) return { isThere: false };
      // Of what it would pack, a server tells the packed length or none; some answer only GET.
      const length = wholeLength(response);
      return { isThere: true, stat: length === undefined ? undefined : statOf(response, length) };
    });
    if (told.stat || !told.isThere) return told.stat;
    return range(key, 0, 1, async (response) => {
      await response.body?.cancel();
      check(
        response.ok || response.status === 416,
        "IO",
        nameOf(addressOf(key)),
        () => `status ${response.status} is not 200.`,
        "Check the address and headers.",
      );
      const { length = takesWhole ? wholeLength(response) : undefined } = rangeOf(response);
      check(
        length !== undefined,
        "UNSUPPORTED",
        nameOf(addressOf(key)),
        () => "the server does not say how long the file is.",
        USE_RANGES,
      );
      return statOf(response, length);
    });
  };

  const read: ObjectStore["read"] = async (key, target, position, { byteLength, version }) => {
    const held = await whole.get(key)?.catch(() => undefined);
    if (held) return target.set(held.subarray(position, position + target.length));
    const url = nameOf(addressOf(key));
    await range(key, position, position + target.length, async (response) => {
      const { status } = response;
      const isWhole = takesWhole && status === 200 && !isEncoded(response);
      const isRange = status === 206 && !isEncoded(response);
      const isTaken = isRange || (isWhole && !whole.has(key));
      if (!isTaken) await response.body?.cancel();
      if (status === 404 || status === 410) throw fail("ENOENT", `${url} is not there any more`);
      const { begin = position, length = (isWhole && wholeLength(response)) || byteLength } = rangeOf(response);
      const said = versionOf(response);
      const isOther = version !== undefined && said !== undefined && said !== version;
      if (status === 416 || isOther || length !== byteLength) throw fail("ESTALE", `${url} has been replaced`);
      check(
        isRange || isWhole,
        "UNSUPPORTED",
        url,
        () => `ranges are needed, got status ${status}${isRange || status !== 206 ? "" : ", packed"}.`,
        USE_RANGES,
      );
      const fill = async (all: Uint8Array, from: number) => {
        const count = await fillFrom(response, all);
        const isAsked = count === all.length && begin === position;
        check(
          isAsked,
          "IO",
          url,
          () => `${all.length} bytes from ${from} were asked for, got ${count} from ${isRange ? begin : 0}.`,
          "Look at the server, and at what stands before it.",
        );
        return all;
      };
      if (isRange) return fill(target, position);
      // Who asks meanwhile waits for the same bytes.
      if (isTaken) {
        const filling = fill(new Uint8Array(byteLength), 0);
        whole.set(key, filling);
        filling.catch(() => whole.delete(key));
      }
      target.set((await whole.get(key)!).subarray(position, position + target.length));
    });
  };

  return {
    stat,
    read,
    async list(folder) {
      if (basename(folder) === MARKER) return []; // who asks so wants to know whether it is there
      if (await stat(join(folder, MARKER))) return [{ name: MARKER, kind: "file" }];
      const problem = "no file is there, and web servers do not list folders.";
      throw new OptError("MISSING", nameOf(addressOf(folder)), problem, "Name a step's own folder, or a file.");
    },
  };
}

function statOf(response: Response, byteLength: number): ObjectStat {
  const modified = Date.parse(response.headers.get("last-modified") ?? "") || 0;
  return { byteLength, modified, version: versionOf(response) };
}

/** What the server says that the file has, where it answers with all of it. */
function wholeLength(response: Response): number | undefined {
  const length = response.headers.get("content-length");
  return response.status === 200 && length !== null && !isEncoded(response) ? Number(length) : undefined;
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

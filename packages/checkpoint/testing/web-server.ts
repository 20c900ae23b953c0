/** A web server on loopback with files in memory: one that gives out ranges, and a hub of models, with the faults of both. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { beforeEach } from "vitest";
import { crc32 } from "../src/format/crc32";

export const COMMITS = ["1".repeat(40), "2".repeat(40)];

export class WebServer {
  /** By path, from the root. */
  readonly files = new Map<string, Uint8Array>();
  /** `GET /path begin-end`, in the order of arrival. */
  readonly requests: string[] = [];
  /** Bytes of files that were sent. */
  sent = 0;
  /** Requests that are answered with 503 before it recovers. */
  failures = 0;
  hasRanges = true;
  saysLength = true;
  /** Answers that break off in the middle before they no longer do. */
  breaks = 0;
  /** What it wants to see; paths that begin with `/elsewhere/` never want it, and must not see it. */
  token: string | undefined;
  /** Where a path is found now. */
  readonly moved = new Map<string, string>();
  /** The commit of `main`, whose files lie below `/owner/name/resolve/<commit>/`. */
  commit = COMMITS[0]!;
  /** Entries on a page of the hub's trees. */
  page = 2;
  url = "";

  answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname: path, searchParams } = new URL(request.url!, this.url);
    const { range = "", authorization } = request.headers;
    this.requests.push(`${request.method} ${path}${range.replace("bytes=", " ")}`);
    if (this.failures-- > 0) return void response.writeHead(503).end();
    const wanted = this.token !== undefined && !path.startsWith("/elsewhere/") ? `Bearer ${this.token}` : undefined;
    if (authorization !== wanted) return void response.writeHead(401).end();
    const moved = this.moved.get(path);
    if (moved) return void response.writeHead(302, { location: moved }).end();
    if (path.startsWith("/api/")) return void this.#answerHub(path, Number(searchParams.get("cursor")), response);
    const file = this.files.get(path);
    if (!file) return void response.writeHead(404).end();
    response.setHeader("etag", `"${crc32(file)}"`);
    const [, from, to] = /bytes=(\d+)-(\d+)/.exec(this.hasRanges ? range : "") ?? [];
    const part = from === undefined ? file : file.subarray(Number(from), Number(to) + 1);
    if (from !== undefined)
      response.setHeader("content-range", `bytes ${from}-${Number(from) + part.length - 1}/${file.length}`);
    if (this.saysLength) response.setHeader("content-length", part.length);
    response.writeHead(from === undefined ? 200 : 206);
    if (request.method === "HEAD") return void response.end();
    this.sent += part.length;
    if (this.breaks-- > 0)
      return void response.write(part.subarray(0, part.length >> 1), () => request.socket.destroy());
    response.end(part);
  }

  #answerHub(path: string, cursor: number, response: ServerResponse): void {
    const [, name, kind, revision, folder = ""] =
      /^\/api\/models\/([^/]+\/[^/]+)\/(revision|tree)\/([^/]+)\/?(.*)$/.exec(path) ?? [];
    // A revision with slashes is one part of the path.
    const commit = ["main", "refs%2Fpr%2F1"].includes(revision!)
      ? this.commit
      : COMMITS.find((known) => known === revision);
    const root = `/${name}/resolve/${commit}/`;
    const paths = [...this.files.keys()].filter((file) => file.startsWith(root));
    if (paths.length === 0) return void response.writeHead(404).end();
    if (kind === "revision") return void response.end(JSON.stringify({ sha: commit }));
    const prefix = folder === "" ? "" : `${folder}/`;
    const entries = new Map<string, object>();
    for (const file of paths.map((each) => each.slice(root.length)).filter((each) => each.startsWith(prefix))) {
      const [first, ...below] = file.slice(prefix.length).split("/");
      const bytes = this.files.get(root + file)!;
      const [oid, size] = [`${crc32(bytes)}`, bytes.length];
      const one = below.length > 0 ? { type: "directory", oid: "0", size: 0 } : { type: "file", oid: "pointer", size };
      entries.set(first!, { ...one, path: prefix + first, ...(one.type === "file" && { lfs: { oid, size } }) });
    }
    if (entries.size === 0) return void response.writeHead(404).end();
    const end = cursor + this.page;
    // As behind a proxy: it names itself by the address that it knows.
    if (end < entries.size) response.setHeader("link", `<https://hub.invalid${path}?cursor=${end}>; rel="next"`);
    response.end(JSON.stringify([...entries.values()].slice(cursor, end)));
  }
}

/** A new one for each test of a file. */
export function webServer(): { readonly web: WebServer } {
  const held = { web: new WebServer() };
  beforeEach(async () => {
    const web = new WebServer();
    held.web = web;
    const server = createServer((request, response) => web.answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    web.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return () => {
      server.closeAllConnections();
      server.close();
    };
  });
  return held;
}

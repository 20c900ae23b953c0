import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { randomBytes } from "../../testing/fixtures";
import { fetchRequest } from "./fetch-request";
import { nodeRequest } from "./node-request";

const bytes = randomBytes(3_000_000, 1);
let server: Server;
let url: URL;

/** Sends back what it gets; `/bytes`, `/cut`, `/silent` and `/rejected` are what they say. */
beforeEach(async () => {
  server = createServer(async (request, response) => {
    const { length } = bytes;
    if (request.url === "/silent") return;
    if (request.url === "/bytes") return void response.setHeader("content-length", length).end(bytes);
    if (request.url === "/rejected") return void response.writeHead(403).end("why");
    if (request.url === "/cut") {
      response.writeHead(200, { "content-length": length }).write(bytes.subarray(0, 1000));
      return void setTimeout(() => request.socket.destroy(), 20);
    }
    const got: Uint8Array[] = [];
    for await (const piece of request) got.push(piece);
    const { "content-length": told = "", "x-asked": asked = "" } = request.headers;
    response.setHeader("x-told", `${request.method} ${told} ${asked}`).end(Buffer.concat(got));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

describe.each([
  ["Node", nodeRequest],
  ["fetch", fetchRequest],
])("%s", (_, request) => {
  const ask = (path: string, more: object = {}) =>
    request(new URL(path, url), { method: "GET", headers: {}, signal: AbortSignal.timeout(60_000), ...more });

  it("sends a body with its length, and gives the answer's", async () => {
    const answer = await ask("/", { method: "PUT", headers: { "x-asked": "yes" }, body: bytes });
    expect([answer.status, answer.header("x-told")]).toEqual([200, "PUT 3000000 yes"]);
    expect(Buffer.compare(answer.body, bytes)).toBe(0);
    const empty = await ask("/", { method: "POST", headers: { "x-asked": "no" } });
    expect(empty.header("x-told")).toBe("POST 0 no");
  });

  it("sends memory that may change its length", async () => {
    const buffer = new (ArrayBuffer as new (length: number, options: object) => ArrayBuffer)(1000, {
      maxByteLength: 1000,
    });
    const body = new Uint8Array(buffer, 0, 1000);
    body.set(bytes.subarray(0, 1000));
    const answer = await ask("/", { method: "PUT", headers: {}, body });
    expect(Buffer.compare(answer.body, bytes.subarray(0, 1000))).toBe(0);
  });

  it("fills the caller's memory, no further than it goes", async () => {
    const into = new Uint8Array(bytes.length + 5);
    expect((await ask("/bytes", { into })).body.buffer).toBe(into.buffer);
    expect(Buffer.compare(into.subarray(0, bytes.length), bytes)).toBe(0);
    const { body } = await ask("/bytes", { into: into.fill(0).subarray(0, 100_000) });
    expect([body.length, into[100_000]]).toEqual([100_000, 0]);
  });

  it("asks for a length alone", async () => {
    const answer = await ask("/bytes", { method: "HEAD" });
    expect([answer.header("content-length"), answer.header("etag"), answer.body.length]).toEqual([
      "3000000",
      undefined,
      0,
    ]);
  });

  it("keeps a rejection's body out of the caller's memory", async () => {
    const into = new Uint8Array(10);
    const { status, body } = await ask("/rejected", { into });
    expect([status, new TextDecoder().decode(body), into[0]]).toEqual([403, "why", 0]);
  });

  it("rejects where the connection ends early, and with the signal's reason", async () => {
    await expect(ask("/cut", { into: new Uint8Array(bytes.length) })).rejects.toBeInstanceOf(Error);
    await expect(ask("/cut")).rejects.toBeInstanceOf(Error);
    await expect(ask("/silent", { signal: AbortSignal.timeout(30) })).rejects.toMatchObject({ name: "TimeoutError" });
    await expect(
      request(new URL("http://127.0.0.1:1"), { method: "GET", headers: {}, signal: AbortSignal.timeout(9999) }),
    ).rejects.toBeInstanceOf(Error);
  });
});

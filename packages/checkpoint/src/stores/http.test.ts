import { createReadStream, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { sampleTensors, scratchFolder } from "../../testing/fixtures";
import { shortWaits } from "../../testing/short-waits";
import { loadCheckpoint } from "../operations";
import { inspectCheckpoint } from "../read/inspect";
import { verifyCheckpoint } from "../read/verify";
import { mergeCheckpoint } from "../rewrite/merge";
import { saveCheckpoint } from "../save/save";
import { httpFileSystem } from "./http";

const folder = scratchFolder();
shortWaits();
const STEP = "step-00000007";
let server: Server;
let base: string;
let sent = 0;
/** Requests that the server answers with 500 before it recovers. */
let failures = 0;
/** Answers that break off in the middle before they no longer do. */
let breaks = 0;
/** Whether the server knows ranges. */
let hasRanges = true;
/** Bytes that the server sends beyond those asked for. */
let more = 0;
/** Whether it packs what is not asked for as it is, as servers do with JSON, and tells the packed length or none. */
let packs: "no" | "and tells" | "and does not tell" = "no";
/** By what it packs ranges, wrongly; the tag then says so. */
let coding = "";
/** Methods that it answers. */
let methods = ["HEAD", "GET"];
/** How far behind the place that was asked for its ranges begin, and whether it says so. */
let shift = 0;
let saysRange = true;
/** Tells the file from the one that takes its name; what it depends on. */
let tag = () => '"1"';

beforeEach(async () => {
  await saveCheckpoint(folder.path, { step: 7, tensors: sampleTensors(1), values: { epoch: 1 } }, { world: 2 });
  server = createServer((request, response) => {
    if (failures-- > 0) return response.writeHead(500).end();
    const path = join(folder.path, decodeURIComponent(request.url!));
    const stat = statSync(path, { throwIfNoEntry: false });
    if (!stat?.isFile()) return response.writeHead(404).end();
    response.setHeader("etag", tag());
    if (!methods.includes(request.method!)) return response.writeHead(405).end();
    if (packs !== "no" && request.headers["accept-encoding"] !== "identity") {
      response.setHeader("content-encoding", "gzip");
      if (packs === "and tells") response.setHeader("content-length", stat.size >> 1);
      return response.writeHead(200).end();
    }
    if (request.method === "HEAD") return response.writeHead(200, { "content-length": stat.size }).end();
    if (!hasRanges) return createReadStream(path).pipe(response);
    const [, begin, end] = /bytes=(\d+)-(\d+)/.exec(request.headers.range!)!.map(Number);
    const length = end! - begin! + 1;
    sent += length;
    const from = Math.max(0, Math.min(begin! + shift, stat.size - length));
    if (saysRange) response.setHeader("content-range", `bytes ${from}-${from + length - 1}/${stat.size}`);
    if (coding !== "")
      response.setHeader("content-encoding", coding).setHeader("etag", tag().replace(/"$/, `-${coding}"`));
    response.writeHead(206, { "content-length": length + more });
    if (breaks-- > 0) return response.write(new Uint8Array(length >> 1), () => request.socket.destroy());
    if (more > 0) return response.end(new Uint8Array(length + more));
    return createReadStream(path, { start: from, end: from + length - 1 }).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  [sent, failures, breaks, more, hasRanges] = [0, 0, 0, 0, true];
  coding = "";
  [packs, methods, shift, saysRange, tag] = ["no", ["HEAD", "GET"], 0, true, () => '"1"'];
});

afterEach(() => new Promise((resolve) => server.close(resolve)));

it("loads and verifies a step; a slice reads its rows and the manifest", async () => {
  const fileSystem = httpFileSystem(base);
  const { tensors, values, step } = await loadCheckpoint(STEP, { fileSystem, as: "plain" });
  expect({ step, values }).toEqual({ step: 7, values: { epoch: 1 } });
  for (const [name, { data }] of Object.entries(sampleTensors(1))) expect(tensors[name]!.data).toEqual(data);
  expect(await verifyCheckpoint(STEP, { fileSystem })).toMatchObject({ ok: true });
  sent = 0;
  await loadCheckpoint(STEP, { fileSystem, names: ["fc.weight"], slices: { "fc.weight": [[0, 1]] }, as: "plain" });
  expect(sent).toBe(statSync(join(folder.path, STEP, "manifest.json")).size + 24);
});

it("asks again when the server fails for a moment, and tells when it goes on failing", async () => {
  failures = 3;
  expect((await loadCheckpoint(STEP, { fileSystem: httpFileSystem(base), as: "plain" })).step).toBe(7);
  failures = 99;
  await expectCode("IO", loadCheckpoint(STEP, { fileSystem: httpFileSystem(base) }));
});

it("asks again for what broke off, and tells when it goes on breaking off", async () => {
  const fileSystem = httpFileSystem(base);
  breaks = 3;
  const { tensors } = await loadCheckpoint(STEP, { fileSystem, as: "plain" });
  for (const [name, { data }] of Object.entries(sampleTensors(1))) expect(tensors[name]!.data).toEqual(data);
  breaks = 99;
  await expectCode("IO", loadCheckpoint(STEP, { fileSystem }));
});

it("rejects more bytes than it asked for", async () => {
  more = 1;
  await expectCode("IO", loadCheckpoint(STEP, { fileSystem: httpFileSystem(base) }));
});

it("says what helps where the server knows no ranges", async () => {
  hasRanges = false;
  const rejection = expectCode("UNSUPPORTED", loadCheckpoint(STEP, { fileSystem: httpFileSystem(base) }));
  expect(await rejection).toMatch(/got status 200\. Let the server answer Range requests, or fetch the file/);
});

/** A file of another system, which keeps no checksums. */
async function merged(): Promise<() => Promise<Uint8Array>> {
  await mergeCheckpoint(folder.path, join(folder.path, "model.safetensors"));
  const options = { fileSystem: httpFileSystem(base), as: "plain" } as const;
  return async () => (await loadCheckpoint("model.safetensors", options)).tensors["fc.weight"]!.data;
}

const WEIGHT = sampleTensors(1)["fc.weight"]!.data;

it("rejects a file that is replaced between two ranges: nothing else tells the bytes of both apart", async () => {
  const load = await merged();
  expect(await load()).toEqual(WEIGHT);
  let asked = 0;
  for (const mark of ["", "W/"]) {
    tag = () => `${mark}"${asked++}"`;
    expect(await expectCode("IO", load())).toMatch(/has been replaced\. Load it again/);
  }
  asked = 0;
  // While its header is read; what is there now is read by itself.
  tag = () => `"${Number(asked++ > 3)}"`;
  expect(await load()).toEqual(WEIGHT);
});

it.each([true, false])("rejects ranges of another place, where the server tells: %s", async (tells) => {
  const load = await merged();
  [shift, saysRange] = [8, tells];
  const message = await load().catch(({ code, message }) => `${code} ${message}`);
  expect(message).toMatch(tells ? /^IO .*64 bytes from 0 were asked for, got 64 from 8/ : /^CORRUPT|^UNSUPPORTED|^IO/);
});

it.each(["and tells", "and does not tell"] as const)("reads where the server packs files %s", async (how) => {
  const load = await merged();
  packs = how;
  expect(await load()).toEqual(WEIGHT);
  // As where a page may not ask for files as they are.
  const { fetch } = globalThis;
  const asAPage = vi.spyOn(globalThis, "fetch").mockImplementation((url, { headers, ...init } = {}) => {
    const { range, ...rest } = headers as Record<string, string>;
    const said = range === undefined ? { ...rest, "accept-encoding": "gzip" } : { ...rest, range };
    return fetch(url, { ...init, headers: said });
  });
  try {
    expect(await load()).toEqual(WEIGHT);
  } finally {
    asAPage.mockRestore();
  }
});

it.each(["gzip", "br", "zstd", "deflate"])(
  "rejects ranges that are packed by %s, of a file that is the same",
  async (by) => {
    const load = await merged();
    coding = by;
    expect(await expectCode("UNSUPPORTED", load())).toContain("got status 206, packed");
  },
);

it("reads where the server answers GET alone", async () => {
  const load = await merged();
  methods = ["GET"];
  expect(await load()).toEqual(WEIGHT);
  await expectCode("MISSING", loadCheckpoint("nothing.safetensors", { fileSystem: httpFileSystem(base) }));
});

it("a run's folder is rejected with what to name instead", async () => {
  const run = httpFileSystem(base.replace(/$/, "/"));
  for (const call of [loadCheckpoint, verifyCheckpoint, inspectCheckpoint])
    expect(await expectCode("MISSING", call("runs/a", { fileSystem: run }))).toMatch(
      /\/runs\/a\] no file is there, and web servers do not list folders\. Name a step's own folder, or a file/,
    );
});

it("writes nothing, and says what is missing", async () => {
  const fileSystem = httpFileSystem(base);
  await expectCode("IO", saveCheckpoint("a", { step: 1, tensors: {} }, { fileSystem }));
  await expectCode("MISSING", loadCheckpoint("step-00000009", { fileSystem }));
  expect(() => httpFileSystem("ftp://a")).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
});

it("sends the headers that it is given, and asks again as often as it is told to", async () => {
  const seen: (string | undefined)[] = [];
  server.prependListener("request", ({ headers }) => void seen.push(headers.authorization));
  const fileSystem = httpFileSystem(base, { headers: { authorization: "Bearer 7" } });
  await loadCheckpoint(STEP, { fileSystem, as: "plain" });
  expect([...new Set(seen)]).toEqual(["Bearer 7"]);
  failures = 1;
  await expectCode("IO", loadCheckpoint(STEP, { fileSystem: httpFileSystem(base, { retries: 0 }) }));
  failures = 5;
  const patient = httpFileSystem(base, { retries: 5 });
  expect((await loadCheckpoint(STEP, { fileSystem: patient, as: "plain" })).step).toBe(7);
});

import { createReadStream, statSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { loadCheckpoint } from "../read/load";
import { verifyCheckpoint } from "../read/verify";
import { saveCheckpoint } from "../save/save";
import { expectCode } from "../testing/expect-code";
import { sampleTensors, scratchFolder } from "../testing/fixtures";
import { httpFileSystem } from "./http";

const folder = scratchFolder();
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

beforeEach(async () => {
  await saveCheckpoint(folder.path, { step: 7, tensors: sampleTensors(1), values: { epoch: 1 } }, { world: 2 });
  server = createServer((request, response) => {
    if (failures-- > 0) return response.writeHead(500).end();
    const path = join(folder.path, decodeURIComponent(request.url!));
    const stat = statSync(path, { throwIfNoEntry: false });
    if (!stat?.isFile()) return response.writeHead(404).end();
    if (request.method === "HEAD") return response.writeHead(200, { "content-length": stat.size }).end();
    if (!hasRanges) return createReadStream(path).pipe(response);
    const [, begin, end] = /bytes=(\d+)-(\d+)/.exec(request.headers.range!)!.map(Number);
    const length = end! - begin! + 1;
    sent += length;
    response.writeHead(206, { "content-length": length + more });
    if (breaks-- > 0) return response.write(new Uint8Array(length >> 1), () => request.socket.destroy());
    if (more > 0) return response.end(new Uint8Array(length + more));
    return createReadStream(path, { start: begin!, end: end! }).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  [sent, failures, breaks, more, hasRanges] = [0, 0, 0, 0, true];
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

it("refuses more bytes than it asked for", async () => {
  more = 1;
  await expectCode("IO", loadCheckpoint(STEP, { fileSystem: httpFileSystem(base) }));
});

it("says what helps where the server knows no ranges", async () => {
  hasRanges = false;
  const refusal = expectCode("UNSUPPORTED", loadCheckpoint(STEP, { fileSystem: httpFileSystem(base) }));
  expect(await refusal).toMatch(/got status 200\. Let the server answer Range requests, or fetch the file/);
});

it("writes nothing, and says what is missing", async () => {
  const fileSystem = httpFileSystem(base);
  await expectCode("IO", saveCheckpoint("a", { step: 1, tensors: {} }, { fileSystem }));
  await expectCode("MISSING", loadCheckpoint("step-00000009", { fileSystem }));
  expect(() => httpFileSystem("ftp://a")).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
});

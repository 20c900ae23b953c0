/** Models of a web server and of a hub, with the options of reading. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tensor } from "@opt/core";
import { expectCode } from "@opt/testkit";
import { afterAll, beforeAll, expect, it } from "vitest";
import { TOKENS, tiny } from "../../testing/tiny";
import { fromPretrained, type LanguageModel, loadAdapter, lora, saveAdapter, savePretrained } from "../index";

const COMMIT = "1".repeat(40);
const folder = mkdtempSync(join(tmpdir(), "opt-models-"));
let requests: string[] = [];

/** Files by ranges, and the answers of a hub: the repository owner/adapter holds an adapter, each other one the model. */
const server = createServer((request, response) => {
  const { pathname } = new URL(request.url!, "http://localhost");
  requests.push(`${request.headers.authorization ?? ""} ${pathname}`.trim());
  const say = (value: unknown) => response.setHeader("content-type", "application/json").end(JSON.stringify(value));
  const files = join(folder, pathname.includes("/adapter/") ? "adapter" : "model");
  const bytes = (name: string) => readFileSync(join(files, name));
  if (pathname.includes("/revision/")) return say({ sha: COMMIT });
  if (pathname.includes("/tree/"))
    return say(readdirSync(files).map((path) => ({ type: "file", path, size: bytes(path).length, oid: path })));
  const name = pathname.split("/").at(-1)!;
  if (!readdirSync(files).includes(name) || pathname.includes("/nowhere/")) return response.writeHead(404).end();
  const file = bytes(name);
  const [from = 0, to = file.length - 1] =
    /bytes=(\d+)-(\d+)/
      .exec(request.headers.range ?? "")
      ?.slice(1)
      .map(Number) ?? [];
  const part = file.subarray(from, to + 1);
  response.writeHead(request.headers.range ? 206 : 200, {
    "accept-ranges": "bytes",
    "content-length": part.length,
    "content-range": `bytes ${from}-${from + part.length - 1}/${file.length}`,
    etag: `"${name}"`,
  });
  return response.end(request.method === "HEAD" ? undefined : part);
});
let url = "";
let model: LanguageModel;

beforeAll(async () => {
  model = await tiny("llama", "js");
  await savePretrained(model, join(folder, "model"));
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await new Promise((done) => server.close(done));
  rmSync(folder, { recursive: true });
});

const logitsOf = (model: LanguageModel) => model.forward(tensor([TOKENS], { dtype: "i32" })).data();

it("a server's folder has the words of the model", async () => {
  const read = await fromPretrained(`${url}/folder`);
  expect(await logitsOf(read.model)).toEqual(await logitsOf(model));
});

it("a hub's repository is read with a token, from one commit, and from the cache the second time", async () => {
  requests = [];
  const options = {
    endpoint: url,
    token: "secret",
    cache: join(folder, "cache"),
    cacheLimit: 1 << 30,
    signal: new AbortController().signal,
  };
  const read = await fromPretrained("hf://owner/name", options);
  expect(await logitsOf(read.model)).toEqual(await logitsOf(model));
  expect(requests.every((request) => request.startsWith("Bearer secret "))).toBe(true);
  expect(requests.some((request) => request.endsWith(`/owner/name/resolve/${COMMIT}/config.json`))).toBe(true);
  requests = [];
  await fromPretrained("hf://owner/name", options);
  expect(requests.filter((request) => request.includes("/resolve/"))).toEqual([]);
});

it("a hub's adapter is read with the same options", async () => {
  const adapted = lora(await tiny("llama", "js"), { rank: 2, targets: ["q_proj"] });
  await saveAdapter(adapted, join(folder, "adapter"));
  requests = [];
  const read = await loadAdapter(await tiny("llama", "js"), "hf://owner/adapter", {
    endpoint: url,
    token: "secret",
    cache: join(folder, "cache"),
    cacheLimit: 1 << 30,
    signal: new AbortController().signal,
  });
  expect(await logitsOf(read)).toEqual(await logitsOf(adapted));
  expect(requests.every((request) => request.startsWith("Bearer secret "))).toBe(true);
});

it("a signal ends the reading", async () => {
  const signal = AbortSignal.abort(new Error("enough"));
  await expect(fromPretrained("hf://owner/name", { endpoint: url, signal })).rejects.toThrow("enough");
  await expectCode("MISSING", () => fromPretrained(`${url}/nowhere`));
});

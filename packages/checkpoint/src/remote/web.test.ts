import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { safetensorsFile } from "../../testing/files/made-files";
import { randomBytes, sampleTensors, scratchFolder } from "../../testing/fixtures";
import { shortWaits } from "../../testing/short-waits";
import { webServer } from "../../testing/web-server";
import { inspectCheckpoint, loadCheckpoint, openSource, saveWeights } from "../operations";
import { saveCheckpoint } from "../save/save";
import { memoryFileSystem } from "../stores/memory";
import { openRemote } from "./open";

const held = webServer();
const folder = scratchFolder();
shortWaits();
afterEach(() => {
  expect(held.web.requests.filter((request) => /^(PUT|POST|DELETE)/.test(request))).toEqual([]);
});

const [A, B] = [randomBytes(40_000, 1), randomBytes(64, 2)];
const made = (a = A) =>
  safetensorsFile([
    { name: "a", shape: [100, 100], data: a },
    { name: "b", shape: [16], data: B },
  ]);

/** The file's address, with the bytes that are there. */
function serve(path = "/models/model.safetensors", bytes = made()): string {
  held.web.files.set(path, bytes);
  return held.web.url + path;
}

it("loads a file, and of a tensor or its rows only their bytes", async () => {
  const url = serve();
  const seen: number[] = [];
  const all = await loadCheckpoint(url, { as: "plain", progress: ({ bytes }) => seen.push(bytes) });
  expect([all.tensors.a!.data, all.tensors.b!.data, seen.at(-1)]).toEqual([A, B, 40_064]);
  held.web.sent = 0;
  const some = await loadCheckpoint(url, { names: ["a"], slices: { a: [[7, 9]] }, as: "plain" });
  expect(some.tensors.a!.data).toEqual(A.subarray(2800, 3600));
  expect(held.web.sent).toBeLessThan(2000);
});

it("finds files beside the one that is named, and takes the query along", async () => {
  serve("/a/shard.safetensors");
  const index = { weight_map: { a: "shard.safetensors", b: "shard.safetensors" } };
  const url = serve("/a/model.safetensors.index.json", Buffer.from(JSON.stringify(index)));
  const answer = held.web.answer.bind(held.web);
  const asked: string[] = [];
  held.web.answer = (request, response) => {
    asked.push(request.url!);
    answer(request, response);
  };
  const { tensors } = await loadCheckpoint(`${url}?signature=1`, { as: "plain" });
  expect(tensors.b!.data).toEqual(B);
  expect(asked.filter((each) => !each.endsWith("?signature=1"))).toEqual([]);
  const spaced = serve("/a%20b/model.safetensors");
  expect((await inspectCheckpoint(spaced)).tensors.length).toBe(2);
});

it("loads a step of ours", async () => {
  const fileSystem = memoryFileSystem();
  const tensors = sampleTensors(1);
  const { path } = await saveCheckpoint("run", { step: 3, tensors, values: { epoch: 1 } }, { fileSystem, world: 2 });
  for (const { name } of await fileSystem.list(path)) {
    const bytes = await fileSystem.blob(join(path, name)).arrayBuffer();
    held.web.files.set(`/${path}/${name}`, new Uint8Array(bytes));
  }
  const url = `${held.web.url}/${path}/`;
  expect((await inspectCheckpoint(url)).world).toBe(2);
  const loaded = await loadCheckpoint(url, { as: "plain" });
  expect([loaded.step, loaded.tensors["fc.weight"]!.data]).toEqual([3, tensors["fc.weight"]!.data]);
});

it("fetches a file once where the server ignores ranges", async () => {
  const url = serve();
  held.web.hasRanges = false;
  held.web.breaks = 1;
  const { tensors } = await loadCheckpoint(url, { as: "plain" });
  expect([tensors.a!.data, tensors.b!.data]).toEqual([A, B]);
  const gets = held.web.requests.filter((request) => request.startsWith("GET"));
  expect([gets.length, held.web.sent]).toEqual([2, 2 * made().length]); // the first broke off
});

it("says what is missing where the server tells no length", async () => {
  const url = serve();
  [held.web.hasRanges, held.web.saysLength] = [false, false];
  expect(await expectCode("UNSUPPORTED", loadCheckpoint(url))).toMatch(/does not say how long the file is/);
});

it("follows redirects, and keeps the token from other servers", async () => {
  const [url, token] = [serve(), "secret"];
  held.web.token = token;
  serve("/elsewhere/1");
  held.web.moved.set("/models/model.safetensors", `${held.web.url.replace("127.0.0.1", "localhost")}/elsewhere/1`);
  const { tensors } = await loadCheckpoint(url, { token, as: "plain" });
  expect(tensors.b!.data).toEqual(B);
});

it("asks again when the server fails for a moment, and ends when it goes on", async () => {
  const url = serve();
  held.web.failures = 3;
  expect((await loadCheckpoint(url, { as: "plain" })).tensors.b!.data).toEqual(B);
  held.web.failures = 99;
  const message = await expectCode("IO", loadCheckpoint(`${url}?signature=secret`));
  expect(message).toMatch(/got status 503/);
  expect(message).not.toMatch(/secret/);
});

it("names the cure where a token is missing or wrong", async () => {
  const url = serve();
  held.web.token = "right";
  for (const options of [{}, { token: "wrong" }])
    expect(await expectCode("IO", loadCheckpoint(url, options))).toMatch(
      /\/models\/model\.safetensors\] .*got status 401\. .*give the option token/,
    );
  expect(held.web.requests.length).toBe(4);
});

it("takes a token as a file has it, and says nothing of one that no header can hold", async () => {
  held.web.token = "right";
  const url = serve();
  const load = (token: string) => loadCheckpoint(url, { token });
  expect((await load("right\n")).tensors.a).toBeDefined();
  expect(await expectCode("IO", load(" "))).toMatch(/status 401/);
  for (const token of ["ri\nght", "ri ght", "r\u00ecght"])
    expect(await expectCode("BAD_ARGUMENT", load(token))).not.toContain("ght");
});

it("rejects a file that is replaced between two reads; what is there now is read by itself", async () => {
  const url = serve();
  const other = randomBytes(40_000, 3);
  const source = await openSource(url);
  serve(undefined, made(other));
  const reading = source.tensors.get("a")!.boxes[0]!.read(new Uint8Array(40_000), 0);
  expect(await expectCode("IO", reading)).toMatch(/has been replaced\. Load it again/);
  await source.close();
  expect((await loadCheckpoint(url, { as: "plain" })).tensors.a!.data).toEqual(other);
});

it("ends with the signal's reason", async () => {
  const url = serve();
  const controller = new AbortController();
  const answer = held.web.answer.bind(held.web);
  held.web.answer = (request, response) => {
    if (held.web.requests.length === 3) controller.abort(new Error("enough"));
    else answer(request, response);
  };
  await expect(loadCheckpoint(url, { signal: controller.signal })).rejects.toThrow("enough");
  const late = loadCheckpoint(url, { signal: AbortSignal.abort(), cache: folder.path });
  await expect(late).rejects.toMatchObject({ name: "AbortError" });
});

it("ends with the signal's reason where all is in the cache", async () => {
  const controller = new AbortController();
  const { path, fileSystem } = await openRemote(serve(), { cache: folder.path, signal: controller.signal });
  const file = await fileSystem.open(path, "read");
  await file.read(new Uint8Array(8), 0);
  controller.abort(new Error("enough"));
  await expect(file.read(new Uint8Array(8), 0)).rejects.toThrow("enough");
});

it("rejects what it must not ask for, and says what is not there", async () => {
  for (const url of ["http://example.org/a.safetensors", "http://127.example.org/a", "https://", `${held.web.url}/%zz`])
    await expectCode("BAD_ARGUMENT", loadCheckpoint(url));
  await expectCode("MISSING", loadCheckpoint(`${held.web.url}/nothing.safetensors`));
});

it("writes to no address", async () => {
  const message = await expectCode("BAD_ARGUMENT", saveWeights("https://example.org/a.safetensors", sampleTensors(1)));
  expect(message).toMatch(/must be of this machine/);
});

import { readFileSync } from "node:fs";
import { beforeEach, expect, it, vi } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { safetensorsFile } from "../../testing/files/made-files";
import { torchFile } from "../../testing/files/torch-files";
import { randomBytes, scratchFolder } from "../../testing/fixtures";
import { shortWaits } from "../../testing/short-waits";
import { COMMITS, webServer } from "../../testing/web-server";
import {
  convertCheckpoint,
  diffCheckpoints,
  explainCheckpoint,
  inspectCheckpoint,
  loadCheckpoint,
  mergeCheckpoint,
  openSource,
  reshardCheckpoint,
  verifyCheckpoint,
} from "../operations";
import { hubFiles } from "./hub";

const held = webServer();
const folder = scratchFolder();
shortWaits();

const file = (name: string, seed: number) => safetensorsFile([{ name, shape: [4], data: randomBytes(16, seed) }]);
const bytesOf = async (address: string, name = "a") =>
  (await loadCheckpoint(address, { endpoint: held.web.url, as: "plain" })).tensors[name]!.data;

function put(files: Readonly<Record<string, Uint8Array>>, commit = COMMITS[0]): void {
  for (const [path, bytes] of Object.entries(files)) held.web.files.set(`/owner/name/resolve/${commit}/${path}`, bytes);
}

beforeEach(() => {
  put({ "model.safetensors": file("a", 1), "sub/part.safetensors": file("a", 2), "README.md": Buffer.from("# model") });
});

it("reads a repository's folder, a folder in it, and a file", async () => {
  expect(await bytesOf("hf://owner/name")).toEqual(randomBytes(16, 1));
  expect(await bytesOf("hf://owner/name/sub")).toEqual(randomBytes(16, 2));
  for (const revision of ["main", "refs/pr/1", COMMITS[0]])
    expect(await bytesOf(`hf://owner/name@${revision}/sub/part.safetensors`)).toEqual(randomBytes(16, 2));
  const { path, format } = await inspectCheckpoint("hf://owner/name/sub/", { endpoint: `${held.web.url}/` });
  expect([path, format]).toEqual(["owner/name/sub/", "safetensors shards"]);
});

it("reads a set with an index, whose list has several pages", async () => {
  const weight_map = { a: "model-1.safetensors", b: "model-2.safetensors" };
  put({
    "set/model-1.safetensors": file("a", 3),
    "set/model-2.safetensors": file("b", 4),
    "set/model.safetensors.index.json": Buffer.from(JSON.stringify({ weight_map })),
  });
  expect(await bytesOf("hf://owner/name/set", "b")).toEqual(randomBytes(16, 4));
  expect(held.web.requests.filter((request) => request.endsWith("/set")).length).toBe(2);
});

it("reads pytorch_model.bin, and the safetensors that are beside it before it", async () => {
  const pickled = { "old/pytorch_model.bin": readFileSync(torchFile("swapped.pt")) };
  put(pickled);
  expect((await inspectCheckpoint("hf://owner/name/old", { endpoint: held.web.url })).format).toBe("PyTorch");
  put({ "old/model.safetensors": file("a", 5) });
  expect(await bytesOf("hf://owner/name/old")).toEqual(randomBytes(16, 5));
});

it("reads all of one commit, also where the branch moves on; and the commit that is named", async () => {
  const source = await openSource("hf://owner/name", { endpoint: held.web.url });
  put({ "model.safetensors": file("a", 9) }, COMMITS[1]);
  held.web.commit = COMMITS[1]!;
  const data = new Uint8Array(16);
  await source.tensors.get("a")!.boxes[0]!.read(data, 0);
  await source.close();
  expect(data).toEqual(randomBytes(16, 1));
  expect(await bytesOf("hf://owner/name")).toEqual(randomBytes(16, 9));
  expect(await bytesOf(`hf://owner/name@${COMMITS[0]}`)).toEqual(randomBytes(16, 1));
});

it("takes hub and token from the environment, and the options before them", async () => {
  held.web.token = "right";
  vi.stubEnv("HF_ENDPOINT", held.web.url);
  vi.stubEnv("HF_TOKEN", "right");
  try {
    expect((await loadCheckpoint("hf://owner/name")).tensors.a!.shape).toEqual([4]);
    const message = await expectCode("IO", loadCheckpoint("hf://owner/name", { token: "wrong" }));
    expect(message).toMatch(/got status 401\. .*give the option token, or set HF_TOKEN/);
  } finally {
    vi.unstubAllEnvs();
  }
});

it("asks again while the hub fails for a moment", async () => {
  held.web.failures = 3;
  expect(await bytesOf("hf://owner/name")).toEqual(randomBytes(16, 1));
});

it("lists a folder anew where the hub has failed before", async () => {
  const { store } = await hubFiles("hf://owner/name", { endpoint: held.web.url });
  held.web.failures = 4; // asked again three times
  await expectCode("IO", store.list!(""));
  expect(await store.list!("")).not.toEqual([]);
});

it("names what is wrong with an address", async () => {
  const load = (address: string) => loadCheckpoint(address, { endpoint: held.web.url });
  for (const address of ["hf://gpt2", "hf://owner/", "hf:///name", "hf://owner/name/../other"])
    await expectCode("BAD_ARGUMENT", load(address));
  const cases = [
    ["hf://owner/other", "must know the model's revision main"],
    ["hf://owner/name@refs/pr/2", "must know the model's revision refs/pr/2"],
    ["hf://owner/name/nothing.safetensors", "owner/name/nothing.safetensors] no file or folder is there"],
  ] as const;
  for (const [address, said] of cases) expect(await expectCode("MISSING", load(address))).toContain(said);
  await expectCode("BAD_ARGUMENT", loadCheckpoint("hf://owner/name", { endpoint: "http://example.org" }));
});

it.each([{}, [{ path: 1 }], [null], [{ type: "file", path: "a", size: -1, oid: "1" }]])(
  "rejects %j in the place of a list of files",
  async (said) => {
    held.web.answer = (request, response) =>
      void response.end(JSON.stringify(request.url!.includes("/tree/") ? said : { sha: COMMITS[0] }));
    expect(await expectCode("IO", bytesOf("hf://owner/name"))).toMatch(/must list files/);
  },
);

it("every function that reads takes an address", async () => {
  held.web.token = "right";
  const at = (name: string) => `${folder.path}/${name}`;
  const address = "hf://owner/name";
  const signal = new AbortController().signal;
  const options = { endpoint: held.web.url, token: "right", cache: at("cache"), cacheLimit: 1 << 30, signal };
  expect((await loadCheckpoint(address, options)).tensors.a!.shape).toEqual([4]);
  const source = await openSource(address, options);
  expect([...source.tensors.keys()]).toEqual(["a"]);
  await source.close();
  expect((await inspectCheckpoint(address, options)).bytes).toBe(16);
  expect(await verifyCheckpoint(address, options)).toMatchObject({ ok: true, tensors: 1 });
  expect((await explainCheckpoint(address, options)).parameters).toBe(1);
  await mergeCheckpoint(address, at("a.safetensors"), options);
  await reshardCheckpoint(address, at("run"), { ...options, ranks: 2 });
  await convertCheckpoint([address], at("a.npz"), { ...options, to: "npz" });
  for (const other of ["a.safetensors", "run", "a.npz"])
    expect((await diffCheckpoints(at(other), address, options)).equal).toBe(true);
});

import { inspect } from "node:util";
import { sample } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { randomBytes, sampleTensors } from "../../testing/fixtures";
import { type Fate, type S3Request, s3TestServer } from "../../testing/s3/s3-server";
import { shortWaits } from "../../testing/short-waits";
import { listSteps } from "../format/steps";
import { loadCheckpoint } from "../operations";
import { verifyCheckpoint } from "../read/verify";
import { saveCheckpoint } from "../save/save";
import { cleanCheckpoints } from "../save/step/clean";
import type { FileSystem } from "../stores/file-system";
import { s3FileSystem } from "./s3";

const held = s3TestServer();
const contents = (step: number) => ({ step, tensors: sampleTensors(step), values: { epoch: step } });
const names = async (fileSystem: FileSystem, folder = "runs/a") =>
  (await fileSystem.list(folder)).map(({ name }) => name).sort();

async function expectWhole(fileSystem: FileSystem, step: number, path = "runs/a") {
  const loaded = await loadCheckpoint(path, { fileSystem, step, as: "plain" });
  expect(loaded.values).toEqual({ epoch: step });
  for (const [name, { data }] of Object.entries(sampleTensors(step))) expect(loaded.tensors[name]!.data).toEqual(data);
}

/** Two tensors of 3 MiB: their file is uploaded in two parts. */
const large = (step: number) => ({
  step,
  tensors: Object.fromEntries(
    [0, 1].map((n) => [`w${n}`, { dtype: "F32", shape: [768, 1024], data: randomBytes(3 << 20, step * 10 + n) }]),
  ),
});

it("a slice reads its rows and the manifest, and no other byte", async () => {
  const { server } = held;
  const fileSystem = server.fileSystem();
  const { path } = await saveCheckpoint("runs/a", contents(1), { fileSystem, world: 2 });
  const manifest = await fileSystem.open(`${path}/manifest.json`, "read").then((file) => file.size());
  server.bytesRead = 0;
  const options = { fileSystem, names: ["fc.weight"], slices: { "fc.weight": [[0, 1]] }, as: "plain" } as const;
  expect((await loadCheckpoint(path, options)).bytesRead).toBe(24);
  expect(server.bytesRead).toBe(manifest + 24);
});

it("keys of any letters are signed as they are sent", async () => {
  const fileSystem = held.server.fileSystem();
  const run = "runs/ä b+c(1)'*!~=&%41";
  await saveCheckpoint(run, contents(1), { fileSystem });
  expect(await names(fileSystem, run)).toEqual(["step-00000001"]);
  await expectWhole(fileSystem, 1, run);
});

it("large files go in parts, and come back bit for bit", async () => {
  const { server } = held;
  const fileSystem = server.fileSystem();
  await saveCheckpoint("runs/a", large(1), { fileSystem });
  expect(server.requests.filter(({ url }) => url.includes("partNumber"))).toHaveLength(2);
  const { tensors } = await loadCheckpoint("runs/a", { fileSystem, as: "plain" });
  for (const [name, { data }] of Object.entries(large(1).tensors))
    expect(Buffer.compare(tensors[name]!.data, data)).toBe(0);
});

describe("when the network fails", () => {
  shortWaits();

  /** Of requests that `test` names, the first `count` meet `fate`. */
  const first = (count: number, fate: Fate, test: (request: S3Request) => boolean) => {
    let left = count;
    return (request: S3Request) => (test(request) && left-- > 0 ? fate : undefined);
  };

  it.each<[Readonly<Record<string, Fate>>]>([
    [{ PUT: "cut", GET: "busy", POST: "lost", DELETE: "lost" }],
    [{ PUT: "lost", GET: "lost" }],
    [{ PUT: "busy" }],
  ])("requests are made anew: %j", async (fates) => {
    const { server } = held;
    const fileSystem = server.fileSystem();
    await saveCheckpoint("runs/a", large(1), { fileSystem });
    const seen = new Set<string>();
    // Each request fails when it is first made.
    server.fate = ({ method, url }) => {
      const isFirst = !seen.has(`${method} ${url}`);
      seen.add(`${method} ${url}`);
      return isFirst ? fates[method] : undefined;
    };
    await saveCheckpoint("runs/a", large(2), { fileSystem, keep: 1 });
    const { tensors } = await loadCheckpoint("runs/a", { fileSystem, as: "plain" });
    expect(Buffer.compare(tensors.w1!.data, large(2).tensors.w1!.data)).toBe(0);
    expect(await names(fileSystem)).toEqual(["step-00000002"]);
    expect(await names(fileSystem, "runs/a/step-00000002")).toHaveLength(2);
  });

  it("a server that goes on failing ends the save with advice, in bounded time, older steps whole, nothing secret said", async () => {
    const { server } = held;
    const fileSystem = server.fileSystem({
      retries: 1,
      credentials: { accessKeyId: "S3RVER", secretAccessKey: "S3RVER" },
    });
    await saveCheckpoint("runs/a", contents(1), { fileSystem });
    const put = /\.safetensors/;
    server.fate = ({ method, url }) => (method === "PUT" && put.test(url) ? "busy" : undefined);
    const error = await saveCheckpoint("runs/a", contents(2), { fileSystem }).catch((failure) => failure);
    expect(error).toMatchObject({ code: "IO" });
    expect(error.message).toMatch(
      /s3:\/\/bucket\/runs\/a\/step-00000002.*status 500 InternalError, 2 times.*Older steps are untouched/,
    );
    expect(inspect(error, { depth: 9 })).not.toMatch(/S3RVER|Signature|Credential/);
    server.fate = () => undefined;
    expect((await listSteps(fileSystem, "runs/a")).map(({ step }) => step)).toEqual([1]);
    await expectWhole(fileSystem, 1);
    await saveCheckpoint("runs/a", contents(2), { fileSystem });
    expect(await names(fileSystem)).toEqual(["step-00000001", "step-00000002"]);
  });

  it("a server that never answers counts as failed after the timeout", async () => {
    const { server } = held;
    const fileSystem = server.fileSystem({ retries: 1, timeout: 100 });
    server.fate = () => "silent";
    const message = await expectCode("IO", loadCheckpoint("runs/a", { fileSystem }));
    expect(message).toContain("no answer within 100 ms, 2 times");
  });

  it("signs for the region that it is given", async () => {
    const { server } = held;
    const seen: string[] = [];
    server.fate = ({ authorization }) => void seen.push(authorization.split("/")[2]!);
    await saveCheckpoint("runs/a", contents(1), { fileSystem: server.fileSystem({ region: "eu-west-3" }) });
    await saveCheckpoint("runs/b", contents(1), { fileSystem: server.fileSystem() });
    expect([...new Set(seen)]).toEqual(["eu-west-3", "us-east-1"]);
  });

  it("an upload that stops half-way is ended, and one of a process that died is found by clean", async () => {
    const { server } = held;
    const fileSystem = server.fileSystem({ retries: 0 });
    await saveCheckpoint("runs/a", contents(1), { fileSystem });
    server.fate = first(1, "busy", ({ url }) => url.includes("partNumber=2"));
    await expectCode("IO", saveCheckpoint("runs/a", large(2), { fileSystem }));
    expect(await names(fileSystem)).toEqual(["step-00000001"]);
    expect(server.uploads.size).toBe(0);
    server.uploads.set("lost", "runs/a/step-00000002/rank-00001-aaaaaaaaaaaa.safetensors");
    await fileSystem.unfinished!.createOnce("runs/a/step-00000002.tmp-host.000000000000.1.1.0-aaaaaaaaaaaa", "x");
    await fileSystem.unfinished!.createOnce("runs/a/step-00000002/rank-00000-aaaaaaaaaaaa.safetensors", "half");
    expect((await cleanCheckpoints("runs/a", { fileSystem, force: true })).removed).toHaveLength(1);
    expect(server.uploads.size).toBe(0);
    expect(await names(fileSystem)).toEqual(["step-00000001"]);
  });

  it("whichever request is the last of a process, older steps are whole, and the next save tidies up", async () => {
    const { server } = held;
    let count = 0;
    server.fate = () => {
      count++;
      return undefined;
    };
    await saveCheckpoint("runs/0", contents(1), { fileSystem: server.fileSystem(), world: 2, keep: 1 });
    const positions = Array.from({ length: count + 12 }, (_, at) => at);
    for (const at of sample(positions)) {
      server.fate = () => undefined;
      const run = `runs/${at + 1}`;
      await saveCheckpoint(run, contents(1), { fileSystem: server.fileSystem(), world: 2 });
      let asked = 0;
      server.fate = () => (asked++ >= at ? "cut" : undefined);
      await saveCheckpoint(run, contents(2), {
        fileSystem: server.fileSystem({ retries: 0 }),
        world: 2,
        keep: 1,
      }).catch(() => {});
      server.fate = () => undefined;
      const fileSystem = server.fileSystem();
      const steps = (await listSteps(fileSystem, run)).map(({ step }) => step);
      expect(steps.length).toBeGreaterThan(0);
      for (const step of steps) await expectWhole(fileSystem, step, run);
      await saveCheckpoint(run, contents(3), { fileSystem, world: 2, keep: 1 });
      expect(await names(fileSystem, run)).toEqual(["step-00000003"]);
    }
  });
});

describe("what it may not do", () => {
  it("where listing is forbidden a step is read by its own path, and a run is rejected with advice", async () => {
    const { server } = held;
    const { path } = await saveCheckpoint("runs/a", contents(1), { fileSystem: server.fileSystem() });
    server.fate = ({ method, url }) => (method === "GET" && url.includes("list-type") ? "forbidden" : undefined);
    const fileSystem = server.fileSystem();
    expect((await loadCheckpoint(path, { fileSystem })).values).toEqual({ epoch: 1 });
    expect(await verifyCheckpoint(path, { fileSystem })).toMatchObject({ ok: true });
    expect(await expectCode("IO", loadCheckpoint("runs/a", { fileSystem }))).toMatch(/permissions/);
  });

  it("credentials that are wrong, a bucket that is not there", async () => {
    const { server } = held;
    await expectCode(
      "IO",
      loadCheckpoint("runs/a", {
        fileSystem: server.fileSystem({ credentials: { accessKeyId: "x", secretAccessKey: "hidden" } }),
      }),
    );
    await expectCode(
      "MISSING",
      saveCheckpoint("runs/a", contents(1), { fileSystem: server.fileSystem({ bucket: "nowhere" }) }),
    );
    await expectCode("MISSING", loadCheckpoint("runs/none", { fileSystem: server.fileSystem() }));
  });

  it.each([
    [{ bucket: "s3://a" }],
    [{ bucket: "abc", endpoint: "nowhere" }],
    [{ bucket: "abc", credentials: undefined }],
    [{ bucket: "abc", acessKey: "a" }],
  ])("%j", (options) => {
    const given = "credentials" in options ? options : { credentials: "anonymous", ...options };
    expect(() => s3FileSystem(given as never)).toThrow(expect.objectContaining({ code: "BAD_ARGUMENT" }));
  });
});

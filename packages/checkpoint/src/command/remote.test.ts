// The command with addresses: the hub comes from the environment, the token from there or from --token.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it, vi } from "vitest";
import { safetensorsFile } from "../../testing/files/made-files";
import { randomBytes, scratchFolder } from "../../testing/fixtures";
import { run } from "../../testing/run-command";
import { COMMITS, webServer } from "../../testing/web-server";

const held = webServer();
const folder = scratchFolder();
const at = (name: string) => join(folder.path, name);
const HUB = "hf://owner/name/model.safetensors";

beforeEach(() => {
  const file = safetensorsFile([{ name: "a", shape: [4], data: randomBytes(16, 1) }]);
  for (const path of ["/model.safetensors", `/owner/name/resolve/${COMMITS[0]}/model.safetensors`])
    held.web.files.set(path, file);
  held.web.token = "right";
  vi.stubEnv("HF_ENDPOINT", held.web.url);
  vi.stubEnv("HF_TOKEN", "right");
  return () => vi.unstubAllEnvs();
});

it("inspects, verifies, explains, merges, re-slices, converts and compares", async () => {
  expect((await run("inspect", HUB)).out).toMatch(/format +safetensors\npath +owner\/name\/model\.safetensors\n/);
  expect((await run("verify", HUB)).code).toBe(0);
  expect((await run("explain", HUB)).out).toMatch(/The optimizer begins cold|begins cold/);
  expect((await run("merge", HUB, "--out", at("a.safetensors"))).code).toBe(0);
  expect((await run("reshard", HUB, "--out", at("run"), "--ranks", "2")).code).toBe(0);
  expect((await run("convert", HUB, "--to", "npz", "--out", at("a.npz"))).code).toBe(0);
  for (const other of ["a.safetensors", "run", "a.npz"]) expect((await run("diff", at(other), HUB)).code).toBe(0);
});

it("joins files of this machine and of addresses", async () => {
  writeFileSync(at("b.safetensors"), safetensorsFile([{ name: "b", shape: [4], data: randomBytes(16, 2) }]));
  const { code } = await run("convert", at("b.safetensors"), HUB, "--to", "safetensors", "--out", at("ab.safetensors"));
  expect([code, (await run("inspect", at("ab.safetensors"))).out]).toEqual([
    0,
    expect.stringMatching(/a +F32.*\nb +F32/),
  ]);
});

it("keeps what it reads with --cache", async () => {
  held.web.token = undefined;
  const url = `${held.web.url}/model.safetensors`;
  for (const isCached of [false, true]) {
    held.web.sent = 0;
    await run(
      "merge",
      url,
      "--out",
      at("a.safetensors"),
      "--overwrite",
      "--cache",
      at("cache"),
      "--cache-limit",
      "8MiB",
    );
    expect(held.web.sent === 0).toBe(isCached);
  }
  vi.stubEnv("XDG_CACHE_HOME", at("home"));
  expect((await run("inspect", url, "--cache")).code).toBe(0);
  expect(existsSync(at("home/opt-checkpoint"))).toBe(true);
  const unkept = await run("inspect", url, "--cache-limit", "8MiB");
  expect([unkept.code, unkept.error]).toEqual([
    2,
    expect.stringMatching(/--cache-limit needs a cache.* Give --cache,/),
  ]);
  const { code, error } = await run("inspect", "--cache", url);
  expect([code, error]).toEqual([2, expect.stringContaining("Write --cache behind the addresses")]);
});

it("says what is wrong: the token, or an address to write to", async () => {
  vi.stubEnv("HF_TOKEN", "wrong-secret");
  const { code, error } = await run("inspect", HUB);
  expect([code, error]).toEqual([1, expect.stringMatching(/got status 401.*set HF_TOKEN/)]);
  expect(error).not.toContain("wrong-secret");
  const given = await run("inspect", HUB, "--token", "wrong-flag");
  expect([given.code, given.error]).toEqual([
    1,
    expect.stringMatching(/got status 401.*give --token, or set HF_TOKEN/),
  ]);
  const wrong = await run("inspect", HUB, "--token=wrong-flag", "--step", "x");
  expect([wrong.code, `${given.error}${wrong.error}`]).toEqual([2, expect.not.stringContaining("wrong-flag")]);
  expect((await run("inspect", HUB, "--token", "right")).code).toBe(0);
  expect((await run("merge", at("a"), "--out", "https://example.org/a.safetensors")).code).toBe(2);
  expect((await run("--help")).out).toContain("hf://owner/name[@revision][/path]");
});

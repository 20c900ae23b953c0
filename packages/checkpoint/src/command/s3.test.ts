// The command with a bucket: credentials and endpoint come from the environment.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it, vi } from "vitest";
import { loadCheckpoint } from "../read/load";
import { saveCheckpoint } from "../save/save";
import { sampleTensors, scratchFolder } from "../testing/fixtures";
import { s3TestServer } from "../testing/s3/s3-server";
import { runCommand } from "./command";

const scratch = scratchFolder();
const held = s3TestServer();
const tensors = sampleTensors(1);

async function run(...args: string[]): Promise<[code: number, out: string, error: string]> {
  const written = { out: "", error: "" };
  const code = await runCommand(args, {
    out: (text) => {
      written.out += text;
    },
    error: (text) => {
      written.error += text;
    },
    isTerminal: false,
  });
  return [code, written.out, written.error];
}

beforeEach(async () => {
  vi.stubEnv("AWS_ENDPOINT_URL_S3", held.server.url);
  vi.stubEnv("AWS_ACCESS_KEY_ID", "S3RVER");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "S3RVER");
  await saveCheckpoint("runs/a", { step: 4, tensors }, { fileSystem: held.server.fileSystem(), world: 2 });
  return () => vi.unstubAllEnvs();
});

it("inspects, verifies, merges to the disk, re-slices in the bucket, compares with the disk, cleans", async () => {
  const file = join(scratch.path, "model.safetensors");
  expect((await run("inspect", "s3://bucket/runs/a"))[1]).toMatch(/step +4/);
  expect((await run("verify", "s3://bucket/runs/a"))[0]).toBe(0);
  expect(await run("merge", "s3://bucket/runs/a", "--out", file)).toMatchObject([0, expect.anything(), ""]);
  expect(existsSync(file)).toBe(true);
  expect((await run("reshard", file, "--out", "s3://bucket/runs/b", "--ranks", "3"))[0]).toBe(0);
  const fileSystem = held.server.fileSystem();
  const { tensors: there, step } = await loadCheckpoint("runs/b", { fileSystem, as: "plain" });
  expect(step).toBe(4);
  expect(there["fc.weight"]!.data).toEqual(tensors["fc.weight"]!.data);
  expect((await run("diff", "s3://bucket/runs/b", file))[0]).toBe(0);
  expect((await run("convert", "s3://bucket/runs/a", "--to", "safetensors", "--out", "s3://bucket/a.st"))[0]).toBe(0);
  expect((await run("diff", "s3://bucket/a.st", file))[0]).toBe(0);
  expect(await run("clean", "s3://bucket/runs/a")).toEqual([0, "nothing to remove\n", ""]);
});

it("says what is missing, and never what is secret", async () => {
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "hidden-secret");
  const [code, out, error] = await run("verify", "s3://bucket/runs/a");
  expect(code).toBe(1);
  expect(out + error).not.toContain("hidden-secret");
  vi.stubEnv("AWS_ACCESS_KEY_ID", undefined);
  expect(await run("verify", "s3://bucket/runs/a")).toEqual([2, "", expect.stringContaining("credentials")]);
  expect((await run("convert", "s3://bucket/a", "b.pt", "--to", "pt", "--out", "c.pt"))[0]).toBe(2);
});

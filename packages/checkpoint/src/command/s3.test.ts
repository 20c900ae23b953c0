// The command with a bucket: credentials and endpoint come from the environment.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it, vi } from "vitest";
import { sampleTensors, scratchFolder } from "../../testing/fixtures";
import { run } from "../../testing/run-command";
import { s3TestServer } from "../../testing/s3/s3-server";
import { loadCheckpoint } from "../operations";
import { saveCheckpoint } from "../save/save";

const scratch = scratchFolder();
const held = s3TestServer();
const tensors = sampleTensors(1);

beforeEach(async () => {
  vi.stubEnv("AWS_ENDPOINT_URL_S3", held.server.url);
  vi.stubEnv("AWS_ACCESS_KEY_ID", "S3RVER");
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "S3RVER");
  await saveCheckpoint("runs/a", { step: 4, tensors }, { fileSystem: held.server.fileSystem(), world: 2 });
  return () => vi.unstubAllEnvs();
});

it("inspects, verifies, merges to the disk, re-slices in the bucket, compares with the disk, cleans", async () => {
  const file = join(scratch.path, "model.safetensors");
  expect((await run("inspect", "s3://bucket/runs/a")).out).toMatch(/step +4/);
  expect((await run("verify", "s3://bucket/runs/a")).code).toBe(0);
  expect(await run("merge", "s3://bucket/runs/a", "--out", file)).toMatchObject({ code: 0, error: "" });
  expect(existsSync(file)).toBe(true);
  expect((await run("reshard", file, "--out", "s3://bucket/runs/b", "--ranks", "3")).code).toBe(0);
  const fileSystem = held.server.fileSystem();
  const { tensors: there, step } = await loadCheckpoint("runs/b", { fileSystem, as: "plain" });
  expect(step).toBe(4);
  expect(there["fc.weight"]!.data).toEqual(tensors["fc.weight"]!.data);
  expect((await run("diff", "s3://bucket/runs/b", file)).code).toBe(0);
  expect((await run("convert", "s3://bucket/runs/a", "--to", "safetensors", "--out", "s3://bucket/a.st")).code).toBe(0);
  expect((await run("diff", "s3://bucket/a.st", file)).code).toBe(0);
  expect(await run("clean", "s3://bucket/runs/a")).toEqual({ code: 0, out: "nothing to remove\n", error: "" });
});

it("says what is missing, and never what is secret", async () => {
  vi.stubEnv("AWS_SECRET_ACCESS_KEY", "hidden-secret");
  const { code, out, error } = await run("verify", "s3://bucket/runs/a");
  expect(code).toBe(1);
  expect(out + error).not.toContain("hidden-secret");
  vi.stubEnv("AWS_ACCESS_KEY_ID", undefined);
  expect(await run("verify", "s3://bucket/runs/a")).toEqual({
    code: 2,
    out: "",
    error: expect.stringContaining("credentials"),
  });
  expect((await run("convert", "s3://bucket/a", "b.pt", "--to", "pt", "--out", "c.pt")).code).toBe(2);
});

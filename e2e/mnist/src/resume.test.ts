import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { init } from "@opt/core";
import "@opt/kernels-wasm";
import { expect, it } from "vitest";
import { loadMnist } from "./data";
import { resume } from "./resume";

it("a run saved on four ranks and resumed from three has the losses of one that never stopped", async () => {
  await init("wasm");
  const folder = await mkdtemp(join(tmpdir(), "opt-resume-"));
  const { uninterrupted, resumed } = await resume(loadMnist(), folder);
  expect(uninterrupted[0]).toBeGreaterThan(uninterrupted.at(-1)!);
  expect(resumed).toEqual(uninterrupted);
  const files = await readdir(join(folder, "ranks-3"), { recursive: true });
  expect(files.filter((name) => name.endsWith(".safetensors"))).toHaveLength(3);
  await rm(folder, { recursive: true });
});

// Merging and re-slicing in a bucket under a cap of memory, in a process of its own.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { bundled } from "@opt/testkit/bundled";
import { expect, it } from "vitest";
import { randomBytes, scratchFolder } from "../../testing/fixtures";
import { s3TestServer } from "../../testing/s3/s3-server";
import { diffCheckpoints } from "../compare/diff";
import { saveCheckpoint } from "../save/save";

const MIB = 1 << 20;
const scratch = scratchFolder();
const held = s3TestServer();

it("128 MiB from 4 ranks under 64 MiB", async () => {
  const fileSystem = held.server.fileSystem();
  const data = randomBytes(64 * MIB, 1);
  const tensors = { a: { dtype: "F32", shape: [64, 262144], data }, b: { dtype: "F32", shape: [64, 262144], data } };
  await saveCheckpoint("run", { step: 1, tensors }, { fileSystem, world: 4 });
  const [program] = await bundled(new URL("../../testing/programs/s3-memory.ts", import.meta.url).pathname);
  const out = `${scratch.path}/memory.json`;
  const child = spawn(process.execPath, [program, held.server.url, `${64 * MIB}`, out], { stdio: "inherit" });
  expect(await new Promise((resolve) => child.on("exit", resolve))).toBe(0);
  const { base, merged, resliced, ok } = JSON.parse(readFileSync(out, "utf8"));
  console.log(
    `over ${(base / MIB).toFixed(0)} MiB: merged ${(merged - base) / MIB}, re-sliced ${(resliced - base) / MIB} MiB`,
  );
  expect(ok).toBe(true);
  expect((merged - base) / MIB).toBeLessThan(64);
  expect((resliced - base) / MIB).toBeLessThan(64);
  expect(await diffCheckpoints("run", "resliced", { fileSystem })).toMatchObject({ equal: true });
  expect(await diffCheckpoints("run", "merged.safetensors", { fileSystem })).toMatchObject({ equal: true });
});

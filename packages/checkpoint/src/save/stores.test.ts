/** What every store holds after saves: a disk, one that renames nothing, and buckets with conditional puts and without. */
import { describe, expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { sampleTensors, scratchFolder } from "../../testing/fixtures";
import { s3TestServer } from "../../testing/s3/s3-server";
import { diffCheckpoints } from "../compare/diff";
import { loadCheckpoint } from "../operations";
import { localFileSystem } from "../platform/local";
import { verifyCheckpoint } from "../read/verify";
import { mergeCheckpoint } from "../rewrite/merge";
import { reshardCheckpoint } from "../rewrite/reshard";
import type { FileSystem } from "../stores/file-system";
import { memoryFileSystem } from "../stores/memory";
import { localCommunicators } from "./ranks/communicator";
import { saveCheckpoint } from "./save";

const scratch = scratchFolder();
const held = s3TestServer();

function bucket(isConditional: boolean): FileSystem {
  held.server.isConditional = isConditional;
  return held.server.fileSystem();
}

const contents = (step: number, epoch = step) => ({ step, tensors: sampleTensors(step), values: { epoch } });

describe.each<[string, () => FileSystem]>([
  ["a disk", () => localFileSystem],
  ["memory", memoryFileSystem],
  ["a bucket", () => bucket(true)],
  ["a bucket without conditional puts", () => bucket(false)],
])("%s", (name, open) => {
  const at = (path: string) => (name === "a disk" ? `${scratch.path}/${path}` : path);
  const names = async (fileSystem: FileSystem, path = "run") =>
    (await fileSystem.list(at(path))).map((entry) => entry.name).sort();

  async function expectWhole(fileSystem: FileSystem, step: number, path = "run", epochs = [step]) {
    const loaded = await loadCheckpoint(at(path), { fileSystem, step, as: "plain" });
    expect(epochs).toContain(loaded.values.epoch);
    for (const [tensor, { data }] of Object.entries(sampleTensors(step)))
      expect(loaded.tensors[tensor]!.data).toEqual(data);
  }

  it("saves, loads, verifies, merges and re-slices, and leaves nothing else behind", async () => {
    const fileSystem = open();
    const { path } = await saveCheckpoint(at("run"), contents(1), { fileSystem, world: 3 });
    expect(path).toBe(at("run/step-00000001"));
    await saveCheckpoint(at("run/"), contents(2), { fileSystem, async: true, sha256: true });
    expect(await names(fileSystem)).toEqual(["step-00000001", "step-00000002"]);
    await expectWhole(fileSystem, 1);
    expect(await verifyCheckpoint(at("run"), { fileSystem })).toMatchObject({ ok: true, tensors: 5 });
    await reshardCheckpoint(at("run"), at("other"), { fileSystem, ranks: 2, step: 1 });
    await expectWhole(fileSystem, 1, "other");
    const whole = at("whole.safetensors");
    const { byteLength } = await mergeCheckpoint(at("run"), whole, { fileSystem });
    const file = await fileSystem.open(whole, "read");
    expect(await file.size()).toBe(byteLength);
    await file.close();
    expect(await diffCheckpoints(at("run"), whole, { fileSystem })).toMatchObject({ equal: true });
    const { step, values } = await loadCheckpoint(whole, { fileSystem, as: "plain" });
    expect({ step, values }).toEqual({ step: 2, values: { epoch: 2 } });
  });

  it("takes the saves of several ranks together", async () => {
    const fileSystem = open();
    const saves = localCommunicators(3).map((communicator) =>
      saveCheckpoint(at("run"), contents(4), { fileSystem, whole: true, communicator }),
    );
    await Promise.all(saves);
    await expectWhole(fileSystem, 4);
    expect(await names(fileSystem)).toEqual(["step-00000004"]);
  });

  it("rejects a step that exists, replaces it when asked, keeps the newest, and of two saves at once leaves one whole", async () => {
    const fileSystem = open();
    for (const step of [1, 2, 3]) await saveCheckpoint(at("run"), contents(step), { fileSystem, keep: 2 });
    expect(await names(fileSystem)).toEqual(["step-00000002", "step-00000003"]);
    await expectCode("DUPLICATE", saveCheckpoint(at("run"), contents(3), { fileSystem }));
    await saveCheckpoint(at("run"), contents(3, 9), { fileSystem, overwrite: true });
    await expectWhole(fileSystem, 3, "run", [9]);
    expect(await names(fileSystem, "run/step-00000003")).toHaveLength(2);
    // Each by a client of its own.
    const clients = [fileSystem, name.startsWith("a bucket") ? held.server.fileSystem() : fileSystem];
    const saves = clients.map((client, i) => saveCheckpoint(at("run"), contents(4, i + 1), { fileSystem: client }));
    const outcomes = (await Promise.allSettled(saves)).map(({ status }) => status);
    expect(outcomes).toContain("fulfilled");
    if (!name.endsWith("without conditional puts")) {
      expect(outcomes).toContain("rejected");
      await expectWhole(fileSystem, 4, "run", [outcomes.indexOf("fulfilled") + 1]);
      expect(await names(fileSystem, "run/step-00000004")).toHaveLength(2);
    }
    await expectWhole(fileSystem, 2);
    await expectWhole(fileSystem, 4, "run", [1, 2]);
    expect(await names(fileSystem)).toEqual(["step-00000002", "step-00000003", "step-00000004"]);
  });
});

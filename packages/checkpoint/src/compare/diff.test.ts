/** Two checkpoints whose systems name tensors differently. */
import { join } from "node:path";
import { expect, it } from "vitest";
import { torchFile } from "../../testing/files/torch-files";
import { scratchFolder } from "../../testing/fixtures";
import { run } from "../../testing/run-command";
import { convertCheckpoint, diffCheckpoints, reshardCheckpoint } from "../operations";
import { saveCheckpoint } from "../save/save";

const folder = scratchFolder();
const at = (name: string) => join(folder.path, name);
const tensor = { dtype: "f32", shape: [2], data: new Float32Array([1, 2]) };

it.each(["flat", "nested", "groups.pt"])("%s equals what it was cut into, under the names there", async (name) => {
  await reshardCheckpoint(torchFile(name), at("cut"), { ranks: 3, parameterOrder: "model", overwrite: true });
  for (const pair of [
    [torchFile(name), at("cut")],
    [at("cut"), torchFile(name)],
  ] as const)
    expect(await diffCheckpoints(...pair)).toMatchObject({ equal: true, differences: [] });
});

it("a value that differs is told under the name of both", async () => {
  await reshardCheckpoint(torchFile("nested"), at("cut"), { ranks: 2 });
  await convertCheckpoint(at("cut"), at("half"), { to: "checkpoint", dtype: "bf16" });
  const { differences } = await diffCheckpoints(torchFile("nested"), at("half"));
  expect(new Set(differences.map(({ kind }) => kind))).toEqual(new Set(["dtype"]));
});

it.each([
  ["model.", "", "model.*=*"],
  ["", "module.", "module.*=*"],
  ["model.", "net.", "model.*=net.*"],
])("names that begin with %j and with %j: the rename is told, and works", async (a, b, rename) => {
  for (const [file, start] of Object.entries({ a, b }))
    await saveCheckpoint(at(file), { step: 0, tensors: { [`${start}0.w`]: tensor, [`${start}1.w`]: tensor } });
  const { code, out } = await run("diff", at("a"), at("b"));
  expect([code, out]).toEqual([1, expect.stringMatching(/\nno name is in both: try --rename '.*'\n$/)]);
  expect(out).toContain(`'${rename}'`);
  expect((await run("diff", at("a"), at("b"), "--rename", rename)).out).toBe("equal: 2 tensors\n");
});

it("names that have nothing in common: no rename is told", async () => {
  await saveCheckpoint(at("a"), { step: 0, tensors: { "a.x": tensor }, values: { lr: 1, epoch: 2 } });
  await saveCheckpoint(at("b"), { step: 0, tensors: { "b.y": tensor } });
  const { out } = await run("diff", at("a"), at("b"));
  expect(out).toBe("a.x: missing in b\nb.y: missing in a\nplain values that differ (not counted): 2, see --json\n");
});

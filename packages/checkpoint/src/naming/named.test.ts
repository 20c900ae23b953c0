// Reshard and merge name what PyTorch wrote as convert does.
import { cpSync, readdirSync, writeFileSync } from "node:fs";
import { expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { torchTensorCall, torchZip } from "../../testing/files/made-files";
import { Tuple } from "../../testing/files/pickles";
import { torchFile } from "../../testing/files/torch-files";
import { STATE, STORAGES } from "../../testing/files/torch-state";
import { scratchFolder } from "../../testing/fixtures";
import { convertCheckpoint, inspectCheckpoint, mergeCheckpoint, reshardCheckpoint } from "../operations";
import { localFileSystem } from "../platform/local";
import { memoryFileSystem } from "../stores/memory";

const scratch = scratchFolder();

async function disk() {
  const fileSystem = memoryFileSystem();
  const file = await fileSystem.open("a.pt", "create");
  const bytes = torchZip(STATE, STORAGES);
  await file.write(bytes, 0);
  await file.finish();
  await file.close();
  return { fileSystem, overwrite: true };
}

const told = async (path: string, { fileSystem }: Awaited<ReturnType<typeof disk>>) => {
  const { tensors } = await inspectCheckpoint(path, { fileSystem });
  return tensors.map(({ name, role, follows }) => [name, role, follows].join()).sort();
};

it("a PyTorch file has the names and roles of convert after reshard and merge", async () => {
  const options = await disk();
  await convertCheckpoint("a.pt", "converted", { to: "checkpoint", ranks: 3, ...options });
  await reshardCheckpoint("a.pt", "cut", { ranks: 3, ...options });
  await mergeCheckpoint("a.pt", "whole.safetensors", options);
  const wanted = await told("converted", options);
  expect(wanted).toContain("fc.weight.exp_avg,state,fc.weight");
  expect([await told("cut", options), await told("whole.safetensors", options)]).toEqual([wanted, wanted]);
});

it("reshard and merge rename, and leave out", async () => {
  const options = await disk();
  const more = { ...options, rename: { "fc.*": "head.*" }, exclude: ["*.exp_avg*"] };
  await reshardCheckpoint("a.pt", "cut", { ranks: 2, ...more });
  await mergeCheckpoint("a.pt", "whole.safetensors", more);
  const names = (await told("cut", options)).map((each) => each.split(",")[0]);
  expect(names).toContain("head.weight");
  expect(names.filter((name) => /exp_avg|^fc/.test(name!))).toEqual([]);
  expect((await told("whole.safetensors", options)).map((each) => each.split(",")[0])).toEqual(names);
  const wrong = reshardCheckpoint("a.pt", "cut", { ranks: 2, ...options, rename: { "none.*": "*" } });
  expect(await expectCode("BAD_ARGUMENT", wrong)).toContain("none.*");
});

it("tensors in tuples go through DCP", async () => {
  const options = await disk();
  const { fileSystem } = options;
  const file = await fileSystem.open("b.pt", "create");
  await file.write(torchZip({ generator: new Tuple("MT19937", torchTensorCall("0", [2]), 5) }, STORAGES), 0);
  await file.finish();
  await file.close();
  const folder = `${scratch.path}/dcp`;
  await convertCheckpoint("b.pt", folder, { to: "dcp", fileSystem, outFileSystem: localFileSystem });
  const { tensors, values } = await inspectCheckpoint(folder);
  const plain = { "generator.0": "MT19937", "generator.2": 5 };
  expect([tensors.map(({ name }) => name), values]).toEqual([["generator.1"], plain]);
});

it("a reshard that fails leaves no folder", async () => {
  const source = `${scratch.path}/bad`;
  cpSync(torchFile("nested"), source, { recursive: true });
  writeFileSync(`${source}/__1_0.distcp`, "damaged");
  const into = `${scratch.path}/runs/bad`;
  await expectCode("CORRUPT", reshardCheckpoint(source, into, { ranks: 2 }));
  expect(readdirSync(scratch.path)).toEqual(["bad"]);
});

it("what PyTorch's own checksums vouch for is verified while it is cut", async () => {
  const { unverified } = await reshardCheckpoint(torchFile("nested"), `${scratch.path}/cut`, { ranks: 3 });
  expect(unverified).toEqual([]);
});

/** `fit` on models that ranks divide: parts of weights, divided layers, and both, with batches that differ in number and size. */
import { spawnSync } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { triesAll } from "@opt/testkit";
import { bundled, optRun } from "@opt/testkit/bundled";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

interface Told {
  refused: string[];
  failed?: string;
  skippedSteps: number;
  scheduled: number;
  averaged: number;
  epochs: Record<string, number>[];
  losses: number[];
  evaluated: Record<string, number>;
  outputs: number[];
  tensors: Record<string, number[]>;
}

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "opt-divided-"));
});

afterAll(() => rm(folder, { recursive: true }));

async function run(place: string, ranks: number, kind: string, last: number, device: string): Promise<Told[]> {
  const path = fileURLToPath(new URL("../../testing/divided-run.ts", import.meta.url));
  const [launcher, program] = await bundled(optRun, path);
  const command = [
    launcher,
    "-n",
    String(ranks),
    "--no-prefix",
    program,
    join(folder, place),
    kind,
    String(last),
    device,
  ];
  const { stdout, stderr } = spawnSync(process.execPath, command, { encoding: "utf8", timeout: 120_000 });
  expect(stderr).toBe("");
  return JSON.parse(stdout) as Told[];
}

function expectClose(actual: Told, expected: Told): void {
  expect(Object.keys(actual.tensors)).toEqual(Object.keys(expected.tensors));
  const pairs = [...Object.keys(expected.tensors).map((name) => [actual.tensors[name]!, expected.tensors[name]!])];
  for (const [a, b] of [...pairs, [actual.outputs, expected.outputs], [actual.losses, expected.losses]])
    for (const [i, value] of a!.entries()) expect(value).toBeCloseTo(b![i]!, 4);
}

describe.each(triesAll ? ["js", "cpu", "wasm"] : ["cpu"])("on %s", (device) => {
  let whole: Told[];

  beforeAll(async () => {
    whole = await run(`whole-${device}`, 2, "data", -1, device);
  });

  it("a model in parts has the words of whole ones, and so has one with a divided optimizer", async () => {
    expect(whole[0]!.losses).toHaveLength(9); // three steps of each epoch
    expect(whole[0]!.epochs).toEqual(whole[1]!.epochs);
    for (const kind of ["fully", "zero"]) expect(await run(`${kind}-${device}`, 2, kind, -1, device)).toEqual(whole);
  });

  it("a model in parts skips the steps that whole ones skip, and so do its schedule and its average", async () => {
    const scaled = await run(`scaled-whole-${device}`, 2, "data+scaler", -1, device);
    expect(scaled[0]).toMatchObject({ skippedSteps: 1, scheduled: 8, averaged: 8 });
    for (const kind of ["fully", "zero"])
      expect(await run(`scaled-${kind}-${device}`, 2, `${kind}+scaler`, -1, device)).toEqual(scaled);
  });

  it("a model of divided layers trains as the whole one", async () => {
    const alone = await run(`alone-${device}`, 1, "data", -1, device);
    const tensor = await run(`tensor-${device}`, 2, "tensor", -1, device);
    for (const each of tensor) {
      expectClose(each, alone[0]!);
      expect(each.refused).toEqual([
        expect.stringMatching(/^\[placing\] 0.weight is divided over "model", whose ranks must have the same samples/),
        expect.stringMatching(/^\[fit\] 0.weight is divided over ranks, so a communicator must say/),
      ]);
    }
    const both = await run(`both-${device}`, 4, "both", -1, device);
    for (const [rank, each] of both.entries()) expectClose(each, whole[rank >> 1]!);
  });

  it("a run in parts goes on whole, with a divided optimizer, and over a mesh", async () => {
    await run(`begun-${device}`, 2, "fully", 4, device);
    for (const [kind, ranks] of [
      ["fully", 2],
      ["data", 2],
      ["zero", 2],
      ["both", 4],
    ] as const) {
      await cp(join(folder, `begun-${device}`), join(folder, `rest-${device}`), { recursive: true });
      const rest = await run(`rest-${device}`, ranks, kind, -1, device);
      await rm(join(folder, `rest-${device}`), { recursive: true });
      // The losses of the first rank are those of the run.
      const since = (each: Told) => ({ ...each, losses: each.losses.slice(4) });
      if (kind === "both")
        for (const [rank, each] of rest.entries()) expectClose(since(each), since(whole[rank >> 1]!));
      else expect(rest.map(since)).toEqual(whole.map(since));
      expect(rest[0]!.losses.slice(0, 4)).toEqual(whole[0]!.losses.slice(0, 4));
    }
  });

  it("a rank that has no batch left to go on with is named", async () => {
    await run(`late-${device}`, 2, "fully", 5, device);
    const told = await run(`late-${device}`, 2, "fully", -1, device);
    expect(told.map(({ failed }) => failed)).toEqual([
      expect.stringMatching(
        /each rank needs a batch after those that are skipped, got none here\. Resume where an epoch/,
      ),
      expect.stringMatching(/got none on another rank/),
    ]);
  });
});

/** `fit` on models that ranks divide: parts of weights, divided layers, and both, with batches that differ in number and size. */

import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { triesAll } from "@opt/testkit";
import { bundled, optRun } from "@opt/testkit/bundled";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { renamed } from "../../../parallel/testing/told";
import type { DividedRun, Told } from "../../testing/divided-run";

/** One job for each number of ranks, so that processes start once. What goes on comes after what it goes on from. */
const RUNS: readonly (readonly [ranks: number, runs: readonly DividedRun[]])[] = [
  [
    2,
    [
      { name: "whole", kind: "data" },
      { name: "fully", kind: "fully" },
      { name: "zero", kind: "zero" },
      { name: "scaled whole", kind: "data", isScaled: true },
      { name: "scaled fully", kind: "fully", isScaled: true },
      { name: "scaled zero", kind: "zero", isScaled: true },
      { name: "tensor", kind: "tensor" },
      { name: "begun", kind: "fully", last: 4 },
      { name: "rest fully", kind: "fully", from: "begun" },
      { name: "rest whole", kind: "data", from: "begun" },
      { name: "rest zero", kind: "zero", from: "begun" },
      { name: "late", kind: "fully", last: 5 },
      { name: "rest late", kind: "fully", from: "late" },
      { name: "kept", kind: "fully", isKept: true },
      { name: "keeps", kind: "fully", isKept: true, last: 6 },
      { name: "frozen", kind: "fully", isFrozen: true },
      { name: "begun over frozen", kind: "fully", isFrozen: true, last: 4 },
      { name: "rest fully over frozen", kind: "fully", isFrozen: true, from: "begun over frozen" },
      { name: "rest whole over frozen", kind: "data", isFrozen: true, from: "begun over frozen" },
    ],
  ],
  [
    1,
    [
      { name: "alone", kind: "data" },
      { name: "kept by one", kind: "fully", isKept: true, from: "keeps" },
    ],
  ],
  [
    4,
    [
      { name: "both", kind: "both" },
      { name: "rest both", kind: "both", from: "begun" },
      { name: "kept by four", kind: "fully", isKept: true, from: "keeps" },
    ],
  ],
];

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "opt-divided-"));
});

afterAll(() => rm(folder, { recursive: true }));

/** What the ranks of each run told. */
async function runAll(device: string): Promise<Record<string, Told[]>> {
  const path = fileURLToPath(new URL("../../testing/divided-run.ts", import.meta.url));
  const [launcher, program] = await bundled(optRun, path);
  const told = RUNS.map(([ranks, runs]) => {
    const command = [
      launcher,
      "-n",
      String(ranks),
      "--no-prefix",
      program,
      join(folder, device),
      device,
      JSON.stringify(runs),
    ];
    const { stdout, stderr } = spawnSync(process.execPath, command, {
      encoding: "utf8",
      timeout: 240_000,
      maxBuffer: 2 ** 24,
    });
    expect(stderr.replace(/^\[earlyStopping\] loss was best in epoch 1.*\n/gm, "")).toBe("");
    return JSON.parse(stdout, renamed) as Record<string, Told[]>;
  });
  return Object.assign({}, ...told);
}

function expectClose(actual: Told, expected: Told): void {
  expect(Object.keys(actual.tensors)).toEqual(Object.keys(expected.tensors));
  const pairs = [...Object.keys(expected.tensors).map((name) => [actual.tensors[name]!, expected.tensors[name]!])];
  for (const [a, b] of [...pairs, [actual.outputs, expected.outputs], [actual.losses, expected.losses]])
    for (const [i, value] of a!.entries()) expect(value).toBeCloseTo(b![i]!, 4);
}

describe.each(triesAll ? ["js", "cpu", "wasm"] : ["cpu"])("on %s", (device) => {
  let told: Record<string, Told[]>;
  let whole: Told[];

  beforeAll(async () => {
    told = await runAll(device);
    whole = told.whole!;
  });

  it("a model in parts has the words of whole ones, and so has one with a divided optimizer", () => {
    expect(whole).toHaveLength(2);
    expect(whole[0]!.losses).toHaveLength(9); // three steps of each epoch
    expect(whole[0]!.epochs).toEqual(whole[1]!.epochs);
    for (const kind of ["fully", "zero"]) expect(told[kind]).toEqual(whole);
  });

  it("a model in parts skips the steps that whole ones skip, and so do its schedule and its average", () => {
    const scaled = told["scaled whole"]!;
    expect(scaled[0]).toMatchObject({ skippedSteps: 1, scheduled: 8, averaged: 8 });
    for (const kind of ["fully", "zero"]) expect(told[`scaled ${kind}`]).toEqual(scaled);
  });

  it("a model of divided layers trains as the whole one", () => {
    const [alone] = told.alone!;
    expect([told.tensor!.length, told.both!.length]).toEqual([2, 4]);
    for (const each of told.tensor!) {
      expectClose(each, alone!);
      expect(each.refused).toEqual([
        expect.stringMatching(/^\[placing\] 0.weight is divided over "model", whose ranks must have the same samples/),
        expect.stringMatching(/^\[fit\] 0.weight is divided over ranks, so a communicator must say/),
      ]);
    }
    for (const [rank, each] of told.both!.entries()) expectClose(each, whole[rank >> 1]!);
  });

  it.each(["fully", "whole", "zero", "both"])("a run in parts goes on: %s", (kind) => {
    const rest = told[`rest ${kind}`]!;
    // The losses of the first rank are those of the run.
    const since = (each: Told) => ({ ...each, losses: each.losses.slice(4) });
    if (kind === "both") for (const [rank, each] of rest.entries()) expectClose(since(each), since(whole[rank >> 1]!));
    else expect(rest.map(since)).toEqual(whole.map(since));
    expect(rest[0]!.losses.slice(0, 4)).toEqual(whole[0]!.losses.slice(0, 4));
  });

  it("state that early stopping keeps of a model in parts is divided anew", () => {
    const { weights } = told.kept![0]!;
    for (const name of ["kept by one", "kept by four"])
      for (const each of told[name]!) expect([each.failed, each.weights]).toEqual([undefined, weights]);
  });

  it("a run over a frozen layer goes on without its weights in the checkpoint", () => {
    const { tensors, weights } = told.frozen![0]!;
    expect([Object.hasOwn(tensors, "0.weight"), Object.hasOwn(tensors, "0.bias")]).toEqual([false, true]);
    for (const name of ["rest fully over frozen", "rest whole over frozen"])
      for (const each of told[name]!)
        expect([each.failed, each.weights, each.tensors]).toEqual([undefined, weights, tensors]);
  });

  it("a rank that has no batch left to go on with is named", () => {
    expect(told["rest late"]!.map(({ failed }) => failed)).toEqual([
      expect.stringMatching(
        /each rank needs a batch after those that are skipped, got none here\. Resume where an epoch/,
      ),
      expect.stringMatching(/got none on another rank/),
    ]);
  });
});

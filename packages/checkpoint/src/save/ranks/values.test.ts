/** One record of the run, and what each rank has of its own. */
import { describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../../testing/disks/memory-file-system";
import { expectCode } from "../../../testing/expect-code";
import { loadCheckpoint } from "../../read/load";
import { checkpointBlob } from "../../rewrite/merge";
import { type CheckpointContents, saveCheckpoint } from "../save";
import { localCommunicators } from "./communicator";

const w = { dtype: "f32", shape: [2], data: Float32Array.of(1, 2) };
type Own = Pick<CheckpointContents, "values" | "rankValues">;

/** How the saves ended, by rank, and where. */
async function save(ofRanks: readonly Own[], async = false) {
  const fileSystem = new MemoryFileSystem();
  const saves = localCommunicators(ofRanks.length).map((communicator) => {
    const contents = { step: 1, tensors: { w }, ...ofRanks[communicator.rank] };
    return saveCheckpoint("/r", contents, { communicator, whole: true, fileSystem, async });
  });
  return { ends: await Promise.allSettled(saves), fileSystem };
}

const loaded = async (ofRanks: readonly Own[]) => {
  const { ends, fileSystem } = await save(ofRanks);
  expect(ends.map(({ status }) => status)).toEqual(ofRanks.map(() => "fulfilled"));
  return (await loadCheckpoint("/r", { fileSystem })).values;
};

describe("values", () => {
  it("are kept once, where ranks say the same or nothing", async () => {
    const values = { epoch: 2, optimizer: { lr: 0.1, groups: [1, { a: null, b: -0 }] } };
    const reordered = { optimizer: { groups: [1, { b: -0, a: null }], lr: 0.1 }, epoch: 2 };
    expect(await loaded([values, values].map((each) => ({ values: each })))).toEqual(values);
    expect(await loaded([{ values }, { values: reordered }, {}, { values: { epoch: 2 } }])).toEqual(values);
  });

  it.each([
    ["another value", { epoch: 3, seed: 1 }, /another "epoch" on rank 2\./],
    ["a member within", { epoch: { of: 2 }, seed: 1 }, /another "epoch" on rank 2\./],
    ["the sign of zero", { seed: -0 }, /another "seed" on rank 2\./],
    ["a key that rank 0 lacks", { loss: 0.5 }, /another "loss" on rank 2\./],
    ["a name of every object", { toString: 1 }, /another "toString" on rank 2\./],
  ])("that would be lost throw on every rank, and nothing is saved: %s", async (_, values, message) => {
    const first = { epoch: 2, seed: 0 };
    for (const async of [false, true]) {
      const { ends, fileSystem } = await save([{ values: first }, { values: first }, { values }], async);
      const reason = { code: "BAD_STATE", message: expect.stringMatching(message) };
      for (const end of ends) expect(end).toMatchObject({ status: "rejected", reason });
      expect((ends[0] as PromiseRejectedResult).reason.message).toMatch(
        /Give what ranks have of their own as rankValues\.$/,
      );
      await expectCode("MISSING", loadCheckpoint("/r", { fileSystem }));
    }
  });

  it("name all ranks that differ", async () => {
    const { ends } = await save([1, 2, 1, 3].map((random) => ({ values: { random } })));
    expect(ends[0]).toMatchObject({ reason: { message: expect.stringContaining('another "random" on ranks 1, 3.') } });
  });
});

describe("rankValues", () => {
  it("are a list by rank, beside the values of the run", async () => {
    const ofRanks = [0, 1, 2].map((rank) => ({ values: { epoch: 1 }, rankValues: { random: [rank, rank] } }));
    const expected = { epoch: 1, rankValues: [{ random: [0, 0] }, { random: [1, 1] }, { random: [2, 2] }] };
    expect(await loaded(ofRanks)).toEqual(expected);
    expect(await loaded([{}, { rankValues: { a: 1 } }])).toEqual({ rankValues: [null, { a: 1 }] });
    expect(await loaded([{ values: { epoch: 1 } }])).toEqual({ epoch: 1 });
  });

  it("of a save without ranks have one entry, in a file too", async () => {
    const contents = { step: 1, tensors: { w }, values: { epoch: 1 }, rankValues: { a: 1 } };
    const expected = { epoch: 1, rankValues: [{ a: 1 }] };
    const fileSystem = new MemoryFileSystem();
    await saveCheckpoint("/r", contents, { fileSystem });
    expect((await loadCheckpoint("/r", { fileSystem })).values).toEqual(expected);
    expect((await loadCheckpoint(await checkpointBlob(contents))).values).toEqual(expected);
  });

  it("must be plain JSON, under a name that values leave free", async () => {
    const saving = (more: object) =>
      saveCheckpoint("/r", { step: 1, tensors: { w }, ...more }, { fileSystem: new MemoryFileSystem() });
    await expectCode("BAD_ARGUMENT", saving({ rankValues: [1] }));
    await expectCode("BAD_ARGUMENT", saving({ rankValues: { a: Number.NaN } }));
    await expectCode("BAD_ARGUMENT", saving({ rankValues: { a: 1 }, values: { rankValues: 1 } }));
    await expect(saving({ rankValues: { a: [undefined] } })).rejects.toThrow(/rankValues\.a\[0\] must be plain JSON/);
  });
});

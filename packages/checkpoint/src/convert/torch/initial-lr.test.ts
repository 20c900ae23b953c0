// A PyTorch schedule goes on from `initial_lr` of each group: the lr with which our schedule began, or the group's own without one.
import { join } from "node:path";
import fc from "fast-check";
import { expect, it } from "vitest";
import { scratchFolder } from "../../../testing/fixtures";
import { openForeign } from "../../formats/registry";
import { localFileSystem } from "../../platform/local";
import { saveCheckpoint } from "../../save/save";
import { convertCheckpoint } from "../convert";

const scratch = scratchFolder();
const rate = fc.integer({ min: 1, max: 64 }).map((part) => part / 32);
/** The present lr of each group and the one with which its schedule began. */
const groups = fc.array(fc.record({ lr: rate, base: rate }), { minLength: 1, maxLength: 3 });
/** What was saved beside the optimizer: its schedule, that of another one, or none. */
const beside = fc.constantFrom("schedule", "another", "nothing");

/** Numbers of the groups by an option's name, as a file has them. */
async function written(path: string, name: string): Promise<unknown[]> {
  const source = await openForeign(path, localFileSystem);
  try {
    const own = Object.entries(source.values).filter(([key]) => key.endsWith(`.${name}`));
    return own.sort(([a], [b]) => a.localeCompare(b)).map(([, value]) => value);
  } finally {
    await source.close();
  }
}

it.each(["pt", "dcp"] as const)("%s has it for each group", async (to) => {
  let count = 0;
  await fc.assert(
    fc.asyncProperty(groups, beside, async (list, saved) => {
      const [run, out] = [join(scratch.path, `run${++count}`), join(scratch.path, `out${count}.${to}`)];
      const lr = list.map((group) => group.lr);
      const baseLrs = list.map(({ base }) => base);
      const schedule = { baseLrs, lastEpoch: 3, lr: saved === "schedule" ? lr : lr.map((one) => one + 1) };
      const tensors = Object.fromEntries(
        list.map((_, i) => [`w${i}`, { dtype: "F32", shape: [1], data: Float32Array.of(i) }]),
      );
      const optimizer = { groups: list.map((group, i) => ({ params: [`w${i}`], lr: group.lr })), counters: {} };
      const values = { optimizer, ...(saved !== "nothing" && { schedule }) };
      await saveCheckpoint(run, { step: 1, tensors, values });
      await convertCheckpoint(run, out, { to });
      expect(await written(out, "lr")).toEqual(lr);
      expect(await written(out, "initial_lr")).toEqual(saved === "schedule" ? baseLrs : lr);
    }),
    { numRuns: 4 },
  );
});

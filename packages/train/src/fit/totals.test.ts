import { init, zeros } from "@opt/core";
import fc from "fast-check";
import { expect, it } from "vitest";
import { memoryRanks } from "../../../parallel/testing/memory-ranks";
import { samplesOf, Totals } from "./totals";

it("sums of all ranks add up, whatever numbers they are", async () => {
  const sums = fc.tuple(fc.double(), fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY, -0, 1e-320, 0.1));
  await fc.assert(
    fc.asyncProperty(fc.array(sums, { minLength: 1, maxLength: 3 }), async (ofRanks) => {
      const all = await Promise.all(
        memoryRanks(ofRanks.length).map((communicator, rank) => {
          const totals = new Totals([]);
          totals.load(ofRanks[rank]!, 1);
          return totals.overRanks("fit", communicator);
        }),
      );
      const expected = [0, 1].map((i) => ofRanks.reduce((sum, own) => sum + own[i]!, 0) + 0);
      for (const own of all) expect(own.map((sum) => sum + 0)).toEqual(expected);
    }),
  );
});

it("a batch of any form has the rows of its first tensor", async () => {
  await init("js");
  const [x, y] = [zeros([3, 2]), zeros([5])];
  const forms = [x, [x, y], { x, y }, ["a text", x], { name: ["a"], x }];
  expect(forms.map(samplesOf)).toEqual(forms.map(() => 3));
  expect([[], {}, "text", null, zeros([]), [zeros([])]].map(samplesOf)).toEqual([1, 1, 1, 1, 1, 1]);
});

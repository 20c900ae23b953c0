import fc from "fast-check";
import { expect, it } from "vitest";
import { memoryRanks } from "../../../parallel/testing/memory-ranks";
import { Agreement } from "./agreement";

it("all ranks end, stop and fail where one of them does, whichever it is", async () => {
  const rank = fc.record({ isOver: fc.boolean(), stop: fc.boolean(), fails: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(fc.array(rank, { minLength: 1, maxLength: 3 }), async (ranks) => {
      const failed = ranks.findIndex(({ fails }) => fails);
      const meetings = memoryRanks(ranks.length).map((communicator, i) => {
        const { isOver, stop, fails } = ranks[i]!;
        const agreement = new Agreement(communicator);
        if (fails) agreement.hold(new RangeError(`of rank ${i}`));
        return agreement.meet(isOver || stop, stop);
      });
      for (const [i, told] of (await Promise.allSettled(meetings)).entries())
        if (failed >= 0) {
          const own = ranks[i]!.fails ? { message: `of rank ${i}` } : { code: "IO" };
          expect(told).toMatchObject({ status: "rejected", reason: own });
        } else {
          const stop = ranks.some((each) => each.stop);
          expect(told).toMatchObject({ value: { isOver: stop || ranks.some((each) => each.isOver), stop } });
        }
    }),
  );
});

// A schedule that is saved after any step, as JSON, and loaded into a new one goes on with the same learning rates.
import fc from "fast-check";
import { expect, it } from "vitest";
import { families, ourTrace } from "../../testing/schedules/recipes";

it.each(families)("%s goes on where it was saved", (_, runs) => {
  fc.assert(
    fc.property(runs, fc.integer({ min: 1, max: 99 }), (run, at) => {
      const short = { ...run, steps: 100 };
      expect(ourTrace(short, at)).toEqual(ourTrace(short));
    }),
    { numRuns: 12 },
  );
});

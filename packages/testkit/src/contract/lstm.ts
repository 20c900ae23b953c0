/** Sequences through an LSTM and their gradient, on devices that have them. */
import { openJsBackend, type SequenceSizes } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import * as reference from "../reference/lstm";
import type { ContractContext } from "./context";
import { guardedLaunch } from "./guarded-launch";
import "../numbers/matcher";

/** length, batch, width: below, at and beyond tiles of 8 rows and vectors of 16 units, and enough work for several threads. */
const SIZES: readonly (readonly [number, number, number])[] = [
  [1, 1, 1],
  [4, 3, 5],
  [3, 8, 16],
  [2, 17, 37],
  [2, 5, 130],
  [2, 3, 515],
  [3, 0, 4],
];

export function lstmContract(context: ContractContext): void {
  const { dtype } = context;
  const hasWords = context.hasPortableWords;

  describe.each([false, true])("lstm, reverse: %s", (reverse) => {
    // The widest costs most, and its products are the same in both directions.
    const directed = reverse ? SIZES.filter(([, , width]) => width < 500) : SIZES;
    const of = ([length, batch, width]: (typeof SIZES)[number]) => {
      const sizes: SequenceSizes = { length, batch, width, reverse };
      const [state, all] = [batch * width, length * batch * width];
      const input = {
        inputs: context.seeded(4 * all, 1),
        weight: context.seeded(4 * width * width, 2).map((x) => x / Math.sqrt(width)),
        bias: context.seeded(4 * width, 3),
        hidden: context.seeded(state, 4).map((x) => x / 4),
        cell: context.seeded(state, 5),
      };
      return { sizes, state, all, input, forward: reference.lstm(input, sizes) };
    };
    const copied = (values: Float64Array) => {
      const copy = context.empty(values.length);
      copy.set(values);
      return copy;
    };

    it.each(context.sample(directed))("of %d x %d, %d wide", async (...extents) => {
      const { sizes, all, input, forward } = of(extents);
      const output = { results: context.empty(all), cells: context.empty(all), gates: context.empty(4 * all) };
      const js = openJsBackend();
      const spec = { kind: "lstm", dtype } as const;
      const exact = await guardedLaunch(js, js.kernel(spec), { input, output }, "apart", (slices) => ({
        ...slices,
        ...sizes,
      }));
      await context.check(
        spec,
        { input, output },
        (slices) => ({ ...slices, ...sizes }),
        (results, label) => {
          for (const [name, words] of hasWords ? Object.entries(exact) : [])
            expect(results[name as keyof typeof results], `${name}, ${label}`).toAgreeWith(words);
          for (const name of ["results", "cells", "gates"] as const) {
            expect(results[name], `${name}, ${label}`).toAgreeWith(forward[name], context.sumTolerance(32));
          }
        },
      );
    });

    it.each(context.sample(directed))("gradient of %d x %d, %d wide", async (...extents) => {
      const { sizes, state, all, input, forward } = of(extents);
      const { weight, cell } = input;
      const [gradient, cellGradient] = [context.seeded(all, 6), context.seeded(state, 7)];
      const expected = reference.lstmGrad(input, gradient, cellGradient, sizes);
      const kept = { cells: copied(forward.cells), gates: copied(forward.gates) };
      const output = {
        inputsGradient: context.empty(4 * all),
        firstHiddenGradient: context.empty(state),
        firstCellGradient: context.empty(state),
      };
      const regions = { input: { weight, cell, ...kept, gradient, cellGradient }, output };
      const js = openJsBackend();
      const spec = { kind: "lstmGrad", dtype } as const;
      const exact = await guardedLaunch(js, js.kernel(spec), regions, "apart", (slices) => ({ ...slices, ...sizes }));
      await context.check(
        spec,
        regions,
        (slices) => ({ ...slices, ...sizes }),
        (results, label) => {
          for (const [name, words] of hasWords ? Object.entries(exact) : [])
            expect(results[name as keyof typeof results], `${name}, ${label}`).toAgreeWith(words);
          for (const name of ["inputsGradient", "firstHiddenGradient", "firstCellGradient"] as const) {
            expect(results[name], `${name}, ${label}`).toAgreeWith(expected[name], context.sumTolerance(64));
          }
        },
      );
    });
  });
}

/** `vmap` of each op is the loop over samples, word by word. */
import type { CallInput } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { opSweep } from "../../testing/sweep";
import { tensor } from "../create";
import { stack } from "../ops";
import { noGrad } from "../tensor/tape";
import type { Tensor } from "../tensor/tensor";
import { vmap } from "./vmap";

const SAMPLES = 3;

/** The numbers of a sample: the drawn ones, each at another place. */
function madeOf({ values, shape, dtype }: CallInput, by: number): Tensor {
  const list = Array.from(values);
  const moved = list.map((_, i) => list[(i + by) % list.length]!);
  return tensor(moved, { shape, dtype });
}
const listed = (result: Tensor | readonly Tensor[]) => (Array.isArray(result) ? result : [result]) as readonly Tensor[];

describe.each(Object.entries(opSweep()))("%s", (_, calls) => {
  it("gives each sample what it gives alone", () => {
    for (const { name, inputs, run } of calls) {
      if (name.includes("assign") || inputs.some(({ dtype }) => dtype === "bool")) continue; // what vmap refuses
      const samplesOf = (isMoved: boolean) =>
        Array.from({ length: SAMPLES }, (_, i) => inputs.map((input) => madeOf(input, isMoved ? i : 0)));
      noGrad(() => {
        let samples = samplesOf(true);
        let alone: (readonly Tensor[])[];
        try {
          alone = samples.map((given) => listed(run(...given)));
        } catch {
          samples = samplesOf(false);
          try {
            alone = samples.map((given) => listed(run(...given)));
          } catch {
            return; // a call that PyTorch rejects, too
          }
        }
        const together = listed(
          vmap((...given: readonly Tensor[]) => run(...given))(
            ...inputs.map((_, i) => stack(samples.map((given) => given[i]!))),
          ),
        );
        for (const [i, result] of together.entries()) {
          const expected = stack(alone.map((results) => results[i]!));
          expect(result.shape, name).toEqual(expected.shape);
          expect(result.dtype, name).toBe(expected.dtype);
          expect(Buffer.compare(Buffer.from(result.bytesSync()), Buffer.from(expected.bytesSync())), name).toBe(0);
        }
      });
    }
  });
});

/** DeepSpeed's groups of options as an optimizer of ours has them, over whichever groups of parameters. */
import fc from "fast-check";
import { expect, it } from "vitest";
import type { PythonTree } from "../python/tree";
import { optionsOf } from "./zero";

const VALUES: Record<string, PythonTree> = { lr: 0.5, weight_decay: 2, amsgrad: false, maximize: null, foreach: null };

it("whatever it leaves open, in one group or in as many as there are", () => {
  const drawn = fc.array(fc.subarray([...Object.keys(VALUES), "betas", "param_names", "params"]), { maxLength: 3 });
  fc.assert(
    fc.property(drawn, fc.array(fc.subarray(["a", "b"]), { minLength: 1, maxLength: 3 }), (groups, names) => {
      const more: Record<string, PythonTree> = {
        betas: { tuple: [0.5, 0.75] },
        param_names: { list: [] },
        params: { list: [7] },
      };
      const list = groups.map((keys): PythonTree => ({ dict: keys.map((key) => [key, { ...VALUES, ...more }[key]!]) }));
      const isKnown = groups.length > 0 && (groups.length === 1 || groups.length === names.length);
      const own = groups.length === 1 ? [names.flat()] : names;
      const expected = groups.map((keys, i) => ({
        ...Object.fromEntries(
          keys.flatMap((key) => (Object.hasOwn(VALUES, key) && VALUES[key] !== null ? [[key, VALUES[key]]] : [])),
        ),
        ...(keys.includes("betas") && { betas: [0.5, 0.75] }),
        params: own[i],
      }));
      const found = optionsOf({ list }, names) as { optimizer?: { groups: Record<string, unknown>[] } };
      const plain = found.optimizer?.groups.map((group) =>
        Object.fromEntries(
          Object.entries(group).map(([key, value]) => [
            key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
            value,
          ]),
        ),
      );
      expect(plain).toEqual(isKnown ? expected : undefined);
    }),
    { seed: 1, numRuns: 200 },
  );
});

/** A dict has no order: what an optimizer's dicts list in another order is the same optimizer. */
import fc from "fast-check";
import { expect, it } from "vitest";
import type { PythonTree } from "../python/tree";
import { optimizerOf } from "./optimizers";

type Members = [PythonTree, PythonTree][];
const PARAMS = ["a.weight", "a.bias", "b"];
const drawn = fc.record({
  lrs: fc.array(fc.constantFrom(0.5, 0.25), { minLength: 3, maxLength: 3 }),
  decays: fc.array(fc.constantFrom(0.5, 0.125), { minLength: 3, maxLength: 3 }),
  isFlat: fc.boolean(),
  seed: fc.infiniteStream(fc.nat(99)),
});

it("nested and flat", () => {
  fc.assert(
    fc.property(drawn, ({ lrs, decays, isFlat, seed }) => {
      const shuffled = (members: Members): Members =>
        members
          .map((member) => [seed.next().value as number, member] as const)
          .sort(([a], [b]) => a - b)
          .map(([, member]) => member);
      const options = (i: number): Members => [
        ["lr", lrs[i]!],
        ["weight_decay", decays[i]!],
      ];
      const state: Members = [
        ["exp_avg", { tensor: "m" }],
        ["step", 3],
      ];
      const flat = PARAMS.flatMap(
        (param, i): Members => [
          ...options(i).map(([key, value]): Members[number] => [`param_groups.${param}.${key}`, value]),
          ...state.map(([key, value]): Members[number] => [`state.${param}.${key}`, value]),
        ],
      );
      const groups = PARAMS.map(
        (param, i): PythonTree => ({ dict: shuffled([...options(i), ["params", { list: [param] }]]) }),
      );
      const nested: Members = [
        ["state", { dict: shuffled(PARAMS.map((param) => [param, { dict: shuffled(state) }])) }],
        ["param_groups", { list: groups }],
      ];
      const found = optimizerOf({ dict: shuffled(isFlat ? flat : nested) }, "p.")!;
      const expected = new Map<string, string[]>();
      for (const [i, param] of PARAMS.entries()) {
        const key = isFlat ? `${lrs[i]} ${decays[i]}` : param;
        expected.set(key, [...(expected.get(key) ?? []), param]);
      }
      const params = (all: readonly (readonly string[])[]) => all.map((each) => each.toSorted().join()).sort();
      expect([found.form, found.prefix]).toEqual([isFlat ? "flat" : "named", "p."]);
      expect(params(found.groups.map((group) => group.params))).toEqual(params([...expected.values()]));
      for (const { options: own, params } of found.groups)
        for (const param of params)
          expect(Object.fromEntries(own)).toEqual(Object.fromEntries(options(PARAMS.indexOf(param))));
      for (const param of PARAMS)
        expect(Object.fromEntries(found.state.get(param)!)).toEqual(Object.fromEntries(state));
    }),
    { seed: 1, numRuns: 100 },
  );
});

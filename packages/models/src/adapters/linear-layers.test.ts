/** Which layers targets mean, however they are written. */
import { init } from "@opt/core";
import { Linear, type Module, ReLU, Sequential } from "@opt/nn";
import { expectCode } from "@opt/testkit";
import fc from "fast-check";
import { expect, it } from "vitest";
import { targeted } from "./linear-layers";

const text = fc.constantFrom("0", "1", "0.1", "1.1", "10", ".1", "");
const drawn = fc.record({
  nested: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 3 }),
  targets: fc.array(
    fc.oneof(text, fc.tuple(fc.constantFrom("1", "^0", "1$", "."), fc.subarray([..."gimsuy"])), fc.constant(/nothing/)),
    { minLength: 1, maxLength: 2 },
  ),
  shared: fc.boolean(),
});

it("names' ends at dots, and patterns with any flags", async () => {
  await init("js");
  await fc.assert(
    fc.asyncProperty(drawn, async ({ nested, targets: written, shared }) => {
      const layer = () => new Linear(1, 1);
      const modules = nested.map((count) =>
        count === 0 ? layer() : new Sequential(...Array.from({ length: count }, layer), new ReLU()),
      );
      const model = new Sequential(...modules, ...(shared ? [modules[0]!] : []));
      const names = nested.flatMap((count, i) =>
        count === 0 ? [`${i}`] : Array.from({ length: count }, (_, j) => `${i}.${j}`),
      );
      const targets = written.map((each) => (Array.isArray(each) ? new RegExp(each[0], each[1].join("")) : each));
      const means = (target: string | RegExp, name: string) =>
        typeof target === "string" ? `.${name}`.endsWith(`.${target}`) : new RegExp(target.source).test(name);
      const meant = () => [...targeted("lora", model as Module, targets).keys()];
      if (targets.some((target) => !names.some((name) => means(target, name))))
        return void (await expectCode("BAD_ARGUMENT", meant));
      expect(meant()).toEqual(names.filter((name) => targets.some((target) => means(target, name))));
    }),
    { seed: 1, numRuns: 150 },
  );
});

// What a later call meets that the first one did not.
import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { compile, Generator, manualSeed, onGradient, parameter, zeros } from "../index";
import { FakeDevice } from "../testing/fake-backend";

it("a hook of a later call cannot replace a gradient", () => {
  const w = parameter([1, 2]);
  let calls = 0;
  onGradient(w, (leaf) => {
    if (++calls === 4) leaf.grad = zeros([2]);
  });
  const body = () => {
    w.sum().backward();
    w.grad = null;
  };
  const step = compile(body, { check: "never" });
  for (let i = 0; i < 3; i++) step();
  expectCode("UNSUPPORTED", step);
  step();
});

it("no gradient is left in a leaf that was disposed", () => {
  const device = new FakeDevice();
  const w = parameter([1, 2], { device });
  const step = compile(() => w.sum().backward());
  for (let i = 0; i < 3; i++) step();
  w.dispose();
  expectCode("DISPOSED", step);
  step.dispose();
  expect(device.memory().tensors).toBe(0);
});

const generator = new Generator(1);
it.each<[string, () => unknown]>([
  ["made", () => new Generator(1)],
  ["seeded", () => manualSeed(1)],
  ["loaded", () => generator.loadStateDict(generator.stateDict())],
])("a generator is not %s in a compiled function", (_, act) => {
  expectCode(
    "UNSUPPORTED",
    compile(() => {
      act();
    }),
  );
});

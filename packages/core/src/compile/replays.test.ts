// What a later call meets that the first one did not.
import { expectCode } from "@opt/testkit";
import { expect, it, vi } from "vitest";
import { FakeDevice } from "../../testing/fake-backend";
import { compile, Generator, init, manualSeed, onGradient, parameter, type Tensor, tensor, zeros } from "../index";

await init("js"); // loads the passes

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

it("temporaries are in other memory than gradients that were freed", () => {
  const device = new FakeDevice();
  const w = parameter(new Float32Array(192), { device });
  const x = tensor([1, 2, 3], { device });
  onGradient(w, () => {});
  const step = compile(
    () => {
      const sums = [x.sum(), x.max(), x.mean()]; // 256 bytes each, as many as the gradient
      w.sum().backward();
      w.grad = null;
      return sums[0]!.add(sums[1]!).add(sums[2]!);
    },
    { check: "never" },
  );
  for (let i = 0; i < 4; i++) expect(step().dataSync()[0]).toBe(11);
});

it("as many signatures as one likes need no more memory than some", () => {
  const device = new FakeDevice();
  const x = tensor(new Float32Array(1000), { device });
  const f = compile((x: Tensor, n: number) => x.mul(n).sum().add(x.softmax(0).mean()));
  vi.spyOn(console, "warn").mockReturnValue(); // of many traces
  const bytes = [40, 60].map((count) => {
    for (let n = 0; n < count; n++) for (let call = 0; call < 3; call++) f(x, n).dispose();
    return device.memory().bytes;
  });
  vi.restoreAllMocks();
  expect(bytes[1]).toBe(bytes[0]);
  f.dispose();
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

// What is written within one memory is as if its source had been copied before, on every device: spans, parts of one array, ops in place.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import { add, applyRuleInPlace, reduceInto, compile, type Device, defineRule, mul, noGrad, parameter, span, type Tensor, tensor } from "@opt/core";
import { eachDevice, expectCode, Random, useSoftwareVulkan } from "@opt/testkit";
import { describe, expect, it } from "vitest";

useSoftwareVulkan();

/** Sizes on both sides of where devices use vectors and threads. */
const SIZES = [1, 2, 17, 63, 64, 65, 1000, 4099, 65_537, 200_000];

interface Shifted {
  readonly size: number;
  /** From where `size` elements are read, and where they go. */
  readonly from: number;
  readonly to: number;
}

function shifts(): Shifted[] {
  const random = new Random(61);
  return SIZES.flatMap((size) =>
    [1, 2, 17, 1 + random.below(64)].flatMap((by) => [
      { size, from: 0, to: by },
      { size, from: by, to: 0 },
    ]),
  );
}

const NUMBERS = Float32Array.from({ length: 200_064 }, (_, i) => (i * 7919) % 8191);
const numbers = (count: number) => NUMBERS.slice(0, count);

/** The oracle: reads all before it writes. */
function moved(values: Float32Array, { size, from, to }: Shifted, change: (read: number, old: number) => number = (read) => read) {
  const result = values.slice();
  for (let i = 0; i < size; i++) result[to + i] = change(values[from + i]!, values[to + i]!);
  return result;
}

/** The first place where two arrays differ; -1 for equals. A matcher would take seconds for long ones. */
function difference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) return a.length;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return i;
  return -1;
}

const spansOf = (x: Tensor, { size, from, to }: Shifted) => [span(x, to, to + size), span(x, from, from + size)] as const;

const addInPlace = defineRule({
  name: "addInPlace",
  buffers: ["y", "x"],
  scalars: [],
  update: ({ y, x }) => ({ y: add(y, mul(2, x)) }),
});

/** Each writes `target` from `source`, and what an element becomes. */
const WRITES: Readonly<Record<string, readonly [(target: Tensor, source: Tensor) => void, (read: number, old: number) => number]>> = {
  set: [(target, source) => target.set(source), (read) => read],
  "set of a span's view": [(target, source) => target.reshape([-1, 1]).set(source.reshape([-1, 1])), (read) => read],
  "a sum in place": [(target, source) => reduceInto(target, [target, source], "add"), (read, old) => read + old],
  "a sum of what overlaps": [(target, source) => reduceInto(target, [source, source, source], "add"), (read) => 3 * read],
  "a rule in place": [(target, source) => applyRuleInPlace(addInPlace, [{ y: target, x: source }], {}), (read, old) => old + 2 * read],
};

await eachDevice((device: Device) => {
  describe.each(Object.entries(WRITES))("%s", (_, [write, change]) => {
    it("reads all before it writes", async () => {
      for (const shift of shifts()) {
        const values = numbers(shift.size + 64);
        const x = tensor(values, { device });
        const before = device.memory().bytes;
        write(...spansOf(x, shift));
        expect(device.memory().bytes, "bytes").toBe(before);
        expect(difference(await x.data(), moved(values, shift, change)), JSON.stringify(shift)).toBe(-1);
        x.dispose();
      }
    });
  });

  it("parts of one array are one memory", async () => {
    for (const shift of shifts()) {
      const values = numbers(shift.size + 64);
      const expected = moved(values, shift);
      const { size, from, to } = shift;
      const [target, source] = [to, from].map((at) => parameter(values.subarray(at, at + size), { device })) as [Tensor, Tensor];
      noGrad(() => target.set(source));
      expect(difference(await target.data(), expected.subarray(to, to + size)), JSON.stringify(shift)).toBe(-1);
      for (const part of [target, source]) part.dispose();
    }
  });

  it("compiled functions write as eager ones do", async () => {
    for (const shift of shifts().filter(({ size }) => size === 1000 || size === 65_537)) {
      const values = numbers(shift.size + 64);
      const x = tensor(values, { device });
      const [target, source] = spansOf(x, shift);
      const step = compile(() => target.set(source), { check: "never" });
      let expected = values;
      for (let call = 0; call < 3; call++) {
        step();
        expected = moved(expected, shift);
      }
      expect(difference(await x.data(), expected), JSON.stringify(shift)).toBe(-1);
      step.dispose();
    }
  });

  it("compiled functions keep what they copied until it is written", async () => {
    for (const size of [98, 4998, 100_000]) {
      const values = numbers(size + 2);
      const shift = { size, from: 0, to: 1 };
      const x = tensor(values, { device });
      const gradients = tensor(values, { device });
      const leaf = parameter(new Float32Array(size), { device });
      leaf.grad = spansOf(gradients, shift)[0];
      const one = tensor([1], { device });
      // A result that needs memory while the copy is alive.
      const step = compile(
        (z: Tensor) => {
          const [target, source] = spansOf(x, shift);
          target.set(source);
          leaf.add(0).backward(spansOf(gradients, shift)[1]);
          return z.add(1);
        },
        { check: "never" },
      );
      let [set, added] = [values, values];
      for (let call = 0; call < 4; call++) {
        step(one).dispose();
        set = moved(set, shift);
        added = moved(added, shift, (read, old) => Math.fround(read + old));
      }
      expect(difference(await x.data(), set), `set ${size}`).toBe(-1);
      expect(difference(await gradients.data(), added), `gradient ${size}`).toBe(-1);
      step.dispose();
    }
  });

  it("compiled functions know parts of one array", async () => {
    const values = numbers(70_000);
    const expected = [0, 1, 2].reduce((before) => moved(before, { size: 69_000, from: 0, to: 17 }), values.slice());
    const [target, source] = [17, 0].map((at) => parameter(values.subarray(at, at + 69_000), { device })) as [Tensor, Tensor];
    const step = compile(() => noGrad(() => target.set(source)), { check: "never" });
    const isInPlace = device.name === "cpu"; // others have copied both
    for (let call = 0; call < 3; call++) step();
    const last = isInPlace ? expected.subarray(17, 69_017) : values.subarray(0, 69_000);
    expect(difference(await target.data(), last)).toBe(-1);
    step.dispose();
  });

  it("a rule can't write one element twice", () => {
    const x = tensor(numbers(10), { device });
    const [a, b] = [span(x, 0, 6), span(x, 4, 10)];
    const other = tensor(numbers(6), { device });
    expectCode("BAD_ARGUMENT", () => applyRuleInPlace(addInPlace, [a, b].map((y) => ({ y, x: other })), {}));
  });
});

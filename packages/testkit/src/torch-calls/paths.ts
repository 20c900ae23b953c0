/**
 * Calls on other paths than the usual one have the same answers: without a tape, and of tensors inside of other memory. Both 16-bit floats
 * are treated alike, and results have memory of their own.
 */
import { OptError, span, type Tensor, tensor, tidy } from "@opt/core";
import { describe, expect, it } from "vitest";
import type { Sweep } from "./sweep";
import { computed, leavesOf, type TorchCall } from "./torch-calls";

const PATHS: Readonly<Record<string, (leaf: Tensor) => Tensor>> = {
  "without a tape": (leaf) => {
    leaf.requiresGrad = false;
    return leaf;
  },
  // Elements before and behind are those of nobody.
  "inside of other memory": (leaf) => {
    const { size, dtype, shape, requiresGrad } = leaf;
    const whole = tensor(new Float64Array(size + 5).fill(dtype === "bool" ? 1 : 7), { dtype });
    const part = span(whole, 3, 3 + size);
    part.set(leaf.detach().reshape([size]));
    const placed = part.reshape(shape).detach();
    placed.requiresGrad = requiresGrad;
    return placed;
  },
};

/** What these are of shares memory with its input. */
const VIEWS = /reshape|squeeze|flatten|atleast/;

/** Registers a test for each function, of so many of its calls. */
export function pathsSuite(sweep: Sweep, count = 3): void {
  describe("on other paths", () =>
    it.each(Object.keys(sweep))("%s", (name) => {
      const calls = sweep[name]!;
      const step = Math.max(1, Math.floor(calls.length / count));
      const each = (first: number) => calls.filter((_, i) => i % step === first);
      for (const call of each(0)) tidy(() => check(call));
      for (const call of each(step - 1))
        tidy(() => expect(described(call, "bf16"), call.name).toEqual(described(call, "f16")));
    }));
}

function check(call: TorchCall): void {
  const plain = { ...call, second: false };
  const given = leavesOf(call);
  const before = given.map(numbers);
  let usual: ReturnType<typeof computed>;
  try {
    usual = computed(plain, given);
  } catch (error) {
    expect(error).toBeInstanceOf(OptError);
    return;
  }
  const { outputs, gradients } = usual;
  for (const [i, leaf] of given.entries())
    if (!outputs.includes(leaf)) expect(numbers(leaf), `${call.name}: input ${i} is not written`).toEqual(before[i]);
  const own = VIEWS.test(call.name) ? [] : given.filter(({ requiresGrad }) => requiresGrad);
  for (const leaf of own)
    expect(
      outputs.map(({ storage }) => storage),
      `${call.name}: results have memory of their own`,
    ).not.toContain(leaf.storage);
  for (const [path, change] of Object.entries(PATHS)) {
    const leaves = leavesOf(call).map(change);
    const other = computed(plain, leaves);
    const compare = (a: readonly (Tensor | null)[], b: readonly (Tensor | null)[], what: string) => {
      const described = (x: Tensor | null) => x && [x.dtype, x.shape];
      expect(b.map(described), `${call.name}, ${path}: ${what}`).toEqual(a.map(described));
      for (const [k, x] of a.entries())
        if (x) expect(numbers(b[k]!), `${call.name}, ${path}: ${what}`).toAgreeWith(numbers(x));
    };
    compare(outputs, other.outputs, "outputs");
    if (leaves.some(({ requiresGrad }) => requiresGrad)) compare(gradients, other.gradients, "gradients");
  }
}

/** Shapes and dtypes of results where all floats are of one dtype, which is called half. */
function described(call: TorchCall, half: "f16" | "bf16"): unknown {
  const leaves = leavesOf(call).map((leaf) => (/f/.test(leaf.dtype) ? leaf.detach().to(half) : leaf));
  try {
    const results = [call.run(...leaves)].flat() as Tensor[];
    return results.map(({ dtype, shape }) => [dtype === half ? "half" : dtype, shape]);
  } catch (error) {
    if (error instanceof OptError) return error.code;
    throw error;
  }
}

const numbers = (x: Tensor) => Float64Array.from(x.dataSync() as ArrayLike<number>);

/** Tables of random calls that PyTorch judges: all of them where it is there, and the first ones by stored answers. */
import {
  askTorch,
  type CallInput,
  expectAnswer,
  Random,
  storedSuite,
  type TorchCall,
  torchPython,
  withoutTorch,
} from "@opt/testkit";
import { describe, it } from "vitest";
import type { DType } from "../src/values/dtype";
import { isFloat } from "../src/values/dtype";
import { sizeOf } from "../src/values/shape";

/** Of the latest table: files that share a process draw the same numbers as alone. */
export let random = /* @__PURE__ */ new Random(33);
export const FLOATS = ["f64", "f32", "f16", "bf16"] as const;
export const ALL = [...FLOATS, "i32", "u8", "bool"] as const;
const EDGES = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, -0];

/** Eighths from -1.5 to 1.5, or to 3.25 from 1/8; `edges` are put among them. */
export function input(
  shape: readonly number[],
  dtype: DType,
  options: { readonly edges?: boolean; readonly positive?: boolean; readonly requiresGrad?: boolean } = {},
): CallInput {
  const { edges, positive, requiresGrad = false } = options;
  const values = Array.from({ length: sizeOf(shape) }, () => {
    if (edges && isFloat(dtype) && random.below(4) === 0) return random.pick(EDGES);
    if (dtype === "bool") return random.below(2);
    const number = random.below(25) - (positive || dtype === "u8" ? -1 : 12);
    return isFloat(dtype) ? number / 8 : number;
  });
  return { values, shape, dtype, requiresGrad: requiresGrad && isFloat(dtype) };
}

export const randomShape = () =>
  Array.from({ length: random.below(4) }, () => (random.below(8) === 0 ? random.below(2) : 1 + random.below(4)));

/** Shapes that broadcast with each other. */
export function randomShapes(count: number): number[][] {
  const whole = randomShape();
  const part = () => whole.slice(random.below(3) === 0 ? random.below(whole.length + 1) : 0);
  return Array.from({ length: count }, () => part().map((extent) => (random.below(4) === 0 ? 1 : extent)));
}

type Add = (name: string, inputs: readonly CallInput[], code: string, run: TorchCall["run"]) => void;

/** A new table. `add` adds a call to it; `second` compares the gradients of gradients, too. */
export function table(): { readonly calls: readonly TorchCall[]; readonly add: Add & { readonly second: Add } } {
  random = new Random(33);
  const calls: TorchCall[] = [];
  const adding =
    (second: boolean): Add =>
    (name, inputs, code, run) => {
      const of = inputs.map((given) => `${given.dtype} [${given.shape}]`).join(", ");
      calls.push({ name: `${calls.length} ${name} of ${of}${second ? ", twice" : ""}`, inputs, code, run, second });
    };
  return { calls, add: Object.assign(adding(false), { second: adding(true) }) };
}

/** How many calls of a table are stored. */
const STORED = 40;

/** Registers the tests. @param file of the stored answers */
export async function judge(file: URL, calls: readonly TorchCall[], stored = STORED): Promise<void> {
  await storedSuite(file, calls.slice(0, stored));
  describe.skipIf(torchPython === undefined)(`as PyTorch${withoutTorch}`, () => {
    const answers = torchPython === undefined ? [] : askTorch(torchPython, calls);
    it.each(calls.map((call, i) => [call.name, call, answers[i]!] as const))("%s", (_, call, answer) => {
      expectAnswer(call, answer);
    });
  });
}

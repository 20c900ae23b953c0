// Every op of rules and maps at values where WGSL leaves the result to the device: as on js, within the bounds of emit/functions.ts.
import * as core from "@opt/core";
import { type Device, init, type Tensor, tensor } from "@opt/core";
import { compareNumbers, useSoftwareVulkan, whyUnavailable } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { openWebGpuBackend } from "./index";

useSoftwareVulkan();
const reason = await whyUnavailable(() => openWebGpuBackend());

const NUMBERS = [
  ...[0, -0, Number.NaN, Infinity, -Infinity],
  ...[1, -1, 0.5, -0.5, 2, -2, 3, -3, 4, 0.1, -0.1, 0.3, -0.9999999, 1e-3, -1e-3],
  ...[1e-30, -1e-30, 2 ** -126, -(2 ** -126), 2 ** -127, -(2 ** -127), 1e-44, 2 ** -149],
  ...[10, -10, 20, -20, 50, -50, 87, -87, 88.7, 88.73, 89, -89, -100, 103, -104, 300, -300],
  ...[1e3, 1e4, -1e4, 1e6, -1e6, 12345678, 16777217, 1e8, 1e10, -1e10, 1e20, -1e20, 1e30, 3e38, -3e38],
].map(Math.fround);

/** Of two operands, all pairs of these. */
const PAIRED = [
  0,
  -0,
  Number.NaN,
  Infinity,
  -Infinity,
  1,
  -1,
  0.5,
  -0.5,
  2,
  -2,
  3,
  -3,
  2.5,
  1e-30,
  2 ** -127,
  1e10,
  3e38,
  -3e38,
];

type Call = (...operands: Tensor[]) => Tensor;
const FUNCTIONS = { ...core } as unknown as Readonly<Record<string, Call>>;

const UNARY =
  "neg abs square sqrt rsqrt exp expm1 log log1p tanh erf sin cos sigmoid floor ceil round sign isnan isfinite logicalNot relu gelu silu selu relu6 hardswish mish logsigmoid softplus elu hardtanh leakyRelu";
const BINARY = "add sub mul div pow maximum minimum less lt le gt ge eq ne logaddexp logicalAnd logicalOr";

async function both(run: (device: Device) => Tensor): Promise<[webgpu: ArrayLike<number>, js: ArrayLike<number>]> {
  const [webgpu, js] = [await init("webgpu"), await init("js")];
  return [await run(webgpu).data(), await run(js).data()];
}

function faults(
  name: string,
  found: ArrayLike<number>,
  right: ArrayLike<number>,
  given: (i: number) => string,
): string[] {
  const list: string[] = [];
  for (let i = 0; i < right.length; i++) {
    const { agrees } = compareNumbers(Float32Array.of(found[i]!), [right[i]!], { absolute: 1.2e-38, relative: 2e-6 });
    if (!agrees) list.push(`${name}(${given(i)}) is ${found[i]}, on js ${right[i]}`);
  }
  return list;
}

describe.skipIf(reason !== undefined)(`special values${reason === undefined ? "" : ` (skipped: ${reason})`}`, () => {
  it.each(UNARY.split(" "))("%s", async (name) => {
    const [found, right] = await both((device) => FUNCTIONS[name]!(tensor(NUMBERS, { device })));
    expect(faults(name, found, right, (i) => String(NUMBERS[i]))).toEqual([]);
  });

  it.each(BINARY.split(" "))("%s", async (name) => {
    const pairs = PAIRED.flatMap((a) => PAIRED.map((b) => [a, b] as const));
    const [found, right] = await both((device) =>
      FUNCTIONS[name]!(
        tensor(
          pairs.map(([a]) => a),
          { device },
        ),
        tensor(
          pairs.map(([, b]) => b),
          { device },
        ),
      ),
    );
    expect(faults(name, found, right, (i) => String(pairs[i]))).toEqual([]);
  });
});

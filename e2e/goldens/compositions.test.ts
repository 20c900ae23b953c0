// Functions that compose ops give the same on every device, eager and compiled.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import "@opt/kernels-webgpu";
import * as core from "@opt/core";
import { compile, type Device, type FunctionDefinition, init, type Tensor, tensor } from "@opt/core";
import { argumentsOf, EXACT_DEVICES, eachDevice, operandsOf, resultsOf, useSoftwareVulkan } from "@opt/testkit";
import { expect, it } from "vitest";

useSoftwareVulkan();

/** A definition that has a name is one of a function that composes ops. */
const DEFINITIONS = Object.values(core).flatMap((op) =>
  typeof op === "function" && "definition" in op && "name" in op.definition && !("gradients" in op.definition)
    ? [op.definition as FunctionDefinition]
    : [],
);
const CHOSEN = { axis: -1, flag: false };
const extentOf = (letter: string) => Number(letter) || 4;

function tensorsOf(definition: FunctionDefinition, device: Device): Tensor[] {
  return operandsOf(definition).map(({ any, letters, kind, below }, place) => {
    const shape = [...(any === "none" ? [] : [2, 3]), ...[...letters].map(extentOf)];
    const size = shape.reduce((a, b) => a * b, 1);
    const most = kind === "mask" ? 2 : extentOf(below);
    const at = (i: number) => (kind === "numbers" ? Math.sin(3 * i + place) : (i * i + 1 + place) % most);
    const dtype = { numbers: "f32", mask: "bool", indices: "i32" } as const;
    return tensor(Array.from({ length: size }, (_, i) => at(i)), { device, dtype: dtype[kind] }).reshape(shape);
  });
}

const numbersOf = async (results: readonly Tensor[]) =>
  (await Promise.all(results.map((result) => result.data()))).map((values) => [...values]);

/** Matrix products add up in each device's order, unless it is opened as portable. */
const OF_PRODUCTS = ["tensordot", "conv1d", "conv3d", "convTranspose1d", "convTranspose3d"];

const js = await init("js");

await eachDevice((device) => {
  it.each(DEFINITIONS.map((definition) => [definition.name, definition] as const))("%s", async (name, definition) => {
    const call = core[name as keyof typeof core] as unknown as (...given: unknown[]) => object;
    const run = (...given: Tensor[]) => [...resultsOf(call(...argumentsOf(definition, given, CHOSEN)))];
    const expected = await numbersOf(run(...tensorsOf(definition, js)));
    const operands = tensorsOf(definition, device);
    const compiled = compile(run);
    for (const results of [run(...operands), compiled(...operands), compiled(...operands)]) {
      const numbers = await numbersOf(results);
      if (EXACT_DEVICES.includes(device.name) && !OF_PRODUCTS.includes(name)) expect(numbers).toEqual(expected);
      else for (const [i, list] of numbers.entries()) expect(list).toAgreeWith(expected[i]!, { relative: 1e-4, absolute: 1e-5 });
    }
  });

  it("bits and shifts of i32 are exact", async () => {
    const ends = [0, 1, -1, 2 ** 31 - 1, -(2 ** 31), 123456789, -987654321, 2 ** 24 + 1];
    const [a, b, n] = [ends, ends.toReversed(), ends.map((_, i) => (5 * i) % 32)].map((numbers) =>
      tensor(numbers, { dtype: "i32", device }),
    ) as [Tensor, Tensor, Tensor];
    const { bitwiseAnd, bitwiseOr, bitwiseXor, bitwiseNot, bitwiseLeftShift, bitwiseRightShift } = core;
    const results = [bitwiseAnd(a, b), bitwiseOr(a, b), bitwiseXor(a, b), bitwiseNot(a), bitwiseLeftShift(a, n), bitwiseRightShift(a, n)];
    const other = ends.toReversed();
    expect(await numbersOf(results)).toEqual([
      ends.map((x, i) => x & other[i]!),
      ends.map((x, i) => x | other[i]!),
      ends.map((x, i) => x ^ other[i]!),
      ends.map((x) => ~x),
      ends.map((x, i) => x << ((5 * i) % 32)),
      ends.map((x, i) => x >> ((5 * i) % 32)),
    ]);
  });
});

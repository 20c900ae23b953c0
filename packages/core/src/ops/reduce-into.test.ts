/** Sums in one pass: the bits of one addition after the other, in any order of memory. */
import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { randn, tensor } from "../create";
import { Generator } from "../random/generator";
import { span } from "../tensor/span";
import type { Tensor } from "../tensor/tensor";
import { versionOf } from "../tensor/version-of";
import "../index";
import { type Combination, reduceInto } from "./reduce-into";

const bits = (x: Tensor) => Buffer.from(x.bytesSync()).toString("hex");

describe.each(["f32", "f64", "bf16", "f16", "i32", "u8"] as const)("%s", (dtype) => {
  it.each([1, 2, 3, 4, 5, 9])("of %d", (count) => {
    const generator = new Generator(count);
    const inputs = () => Array.from({ length: count }, () => randn([33], { generator }).mul(100).to(dtype));
    for (const how of ["add", "minimum", "maximum"] as const)
      for (const divisor of dtype === "i32" || dtype === "u8" ? [1] : [1, 3])
        for (let place = -1; place < count; place++) {
          const all = inputs();
          const of = { add: (a: Tensor, b: Tensor) => a.add(b), minimum: min, maximum: max }[how];
          const sum = all.reduce(of);
          const expected = bits((divisor === 1 ? sum : sum.div(divisor)).clone());
          const output = place < 0 ? tensor(new Float32Array(33)).to(dtype) : all[place]!;
          const version = versionOf(output);
          reduceInto(output, all, how, divisor);
          expect(bits(output), `${how} ${divisor} ${place}`).toBe(expected);
          expect(versionOf(output)).toBe(version);
        }
  });
});

const min = (a: Tensor, b: Tensor) => a.minimum(b);
const max = (a: Tensor, b: Tensor) => a.maximum(b);

it("is of parts in their own memory", () => {
  const x = tensor([1, 2, 3, 4]);
  reduceInto(span(x, 1, 3), [span(x, 1, 3), tensor([10, 20])], "add");
  expect(x.tolist()).toEqual([1, 12, 23, 4]);
});

it.each<[string, Tensor[]]>([
  ["nothing", []],
  ["another size", [tensor([1])]],
  ["another dtype", [tensor(Int32Array.of(1, 2))]],
])("rejects %s", (_, inputs) => {
  expectCode("BAD_ARGUMENT", () => reduceInto(tensor([1, 2]), inputs, "add" as Combination));
});

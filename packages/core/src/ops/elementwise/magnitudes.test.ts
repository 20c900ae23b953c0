/** From the smallest to the largest numbers of float32, ops give what they give in float64, rounded. */
import { operandsOf } from "@opt/testkit";
import { expect, it } from "vitest";
import { DEFINITIONS } from "../../../testing/op-calls";
import * as F from "../../index";

await F.init("js");

const OPS = F as unknown as Readonly<Record<string, (x: F.Tensor) => F.Tensor>>;
/** As PyTorch's: the one rounds its angle, the other multiplies by 6. */
const ROUNDED = ["sinc", "hardswish"];
const UNARY = [...DEFINITIONS].filter(([name, definition]) => {
  const operands = operandsOf(definition);
  if (ROUNDED.includes(name)) return false;
  return operands.length === 1 && operands[0]!.any !== "none" && !definition.arguments;
});
const POWERS = Array.from({ length: 300 }, (_, i) => Math.fround(1.7 * 10 ** (i / 4 - 37)));
const VALUES = [...POWERS, ...POWERS.map((x) => -x)];
const LEAST = 2 ** -126;

it.each(UNARY.map(([name]) => name))("%s", (name) => {
  const [single, double] = (["f32", "f64"] as const).map((dtype) => OPS[name]!(F.tensor(VALUES, { dtype })).dataSync());
  const wrong = VALUES.flatMap((x, i) => {
    const expected = Math.fround(double![i]!);
    // Near what an op takes away from 1, digits are lost.
    const tolerance = 1e-5 * Math.abs(expected) + 1e-6 * Math.min(Math.abs(x), 1) + LEAST;
    const isNear = Object.is(single![i], expected) || Math.abs(single![i]! - expected) <= tolerance;
    return isNear ? [] : [`${name}(${x}) is ${single![i]}, and not ${expected}`];
  });
  expect(wrong).toEqual([]);
});

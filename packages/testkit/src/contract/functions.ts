/** Functions of float32: the same words on every exact device, for numbers of all kinds. */
import { functionOf, type Program, TRANSCENDENTAL_OPS } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { Random } from "../numbers/random";
import { SPECIALS } from "../numbers/specials";
import type { ContractContext } from "./context";
import "../numbers/matcher";

const COUNT = 150_000;
/** What functions branch at, and the float32 number that is closest to a multiple of pi. */
const EDGES = [
  88.72283,
  88.72284,
  -103.97207,
  -103.97208,
  Math.SQRT1_2,
  4,
  10,
  2 ** -29,
  2 ** 20,
  1048576.0625,
  16367173 * 2 ** 72,
];
const NUMBERS = [...SPECIALS.f32, ...EDGES, 3, 1 / 3, 1e-40, 1e10].flatMap((x) => [Math.fround(x), Math.fround(-x)]);

/** Random words, numbers near 1, and of special ones all pairs. */
function makeOperands(): readonly [Float32Array, Float32Array] {
  const random = new Random(600);
  const arrays = [0, 1].map(() => {
    const words = new Int32Array(COUNT).map(() => random.below(2 ** 16) * 2 ** 16 + random.below(2 ** 16));
    return new Float32Array(words.buffer).map((x, i) => (i % 2 === 0 ? x : random.normal() * 2 ** (i % 7)));
  }) as [Float32Array, Float32Array];
  NUMBERS.forEach((x, i) => {
    arrays[0].fill(x, i * NUMBERS.length, (i + 1) * NUMBERS.length);
    arrays[1].set(NUMBERS, i * NUMBERS.length);
  });
  return arrays;
}

let made: ReturnType<typeof makeOperands> | undefined;
const operands = () => (made ??= makeOperands());

export function functionsContract(context: ContractContext): void {
  describe("functions of float32", () => {
    it.each(TRANSCENDENTAL_OPS)(`%s of ${COUNT} numbers of all kinds has the words of its definition`, async (op) => {
      const [x, y] = operands();
      const names = op === "pow" ? ["x", "y"] : ["x"];
      const operand = (slot: number) => ({ op: "buffer", args: [], value: slot, uniform: false }) as const;
      const nodes = [
        ...names.map((_, slot) => operand(slot)),
        { op, args: names.map((_, n) => n), value: 0, uniform: false },
      ];
      const program: Program = { buffers: names, scalars: [], nodes, outputs: [{ slot: 0, node: names.length }] };
      const compute = functionOf(op);
      const expected = x.map((value, i) => compute(value, y[i]));
      await context.check(
        { kind: "map", program, dtype: "f32" },
        { input: { x, y }, output: { output: context.empty(COUNT) } },
        (slices) => ({
          inputs: op === "pow" ? [slices.x, slices.y] : [slices.x],
          output: slices.output,
          scalars: [],
          shape: [COUNT],
          strides: names.map(() => [1]),
        }),
        ({ output }, label) => expect(output, label).toAgreeWith(expected, "bits"),
      );
    });
  });
}

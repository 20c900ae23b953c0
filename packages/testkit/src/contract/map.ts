/** Maps: every op, broadcasting, outputs in place of an input. */
import { ARITY, evaluateOp, type Node, type Op, type Program, RULE_OPS, TRANSCENDENTAL_OPS } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { type ContractContext, LARGE, SIZES } from "./context";
import "../numbers/matcher";

const buffer = (slot: number): Node => ({ op: "buffer", args: [], value: slot, uniform: false });

/** A program of one op on its operands; conditions are made and used by `select(less(a, b), a, b)`. */
function programOf(op: Op): Program {
  const names = ["a", "b", "c"];
  const choosing = op === "less" || op === "select";
  const arity = choosing ? 2 : ARITY[op];
  const operands = names.slice(0, arity).map((_, slot) => buffer(slot));
  const args = operands.map((_, slot) => slot);
  const apply = (applied: Op, on: number[]): Node => ({ op: applied, args: on, value: 0, uniform: false });
  const nodes = choosing
    ? [...operands, apply("less", [0, 1]), apply("select", [2, 0, 1])]
    : [...operands, apply(op, args)];
  return { buffers: names.slice(0, arity), scalars: [], nodes, outputs: [{ slot: 0, node: nodes.length - 1 }] };
}

/** a * s + b * -0.1: scalars and constants beside buffers. */
const scaledSum: Program = {
  buffers: ["a", "b"],
  scalars: ["s"],
  nodes: [
    buffer(0),
    { op: "scalar", args: [], value: 0, uniform: true },
    { op: "mul", args: [0, 1], value: 0, uniform: false },
    buffer(1),
    { op: "constant", args: [], value: -0.1, uniform: true },
    { op: "mul", args: [3, 4], value: 0, uniform: false },
    { op: "add", args: [2, 5], value: 0, uniform: false },
  ],
  outputs: [{ slot: 0, node: 6 }],
};

interface Broadcast {
  readonly name: string;
  readonly shape: readonly number[];
  readonly strides: readonly [readonly number[], readonly number[]];
}

const BROADCASTS: readonly Broadcast[] = [
  { name: "a scalar on the right", shape: [1027], strides: [[1], [0]] },
  { name: "a scalar on the left", shape: [1027], strides: [[0], [1]] },
  { name: "two scalars", shape: [1], strides: [[1], [0]] },
  {
    name: "a row",
    shape: [33, 31],
    strides: [
      [31, 1],
      [0, 1],
    ],
  },
  {
    name: "a column",
    shape: [33, 31],
    strides: [
      [31, 1],
      [1, 0],
    ],
  },
  {
    name: "a row and a column",
    shape: [17, 5],
    strides: [
      [0, 1],
      [1, 0],
    ],
  },
  {
    name: "a column and a number, in whole vectors",
    shape: [4, 64],
    strides: [
      [1, 0],
      [0, 0],
    ],
  },
  {
    name: "a middle axis",
    shape: [5, 7, 3],
    strides: [
      [21, 3, 1],
      [3, 0, 1],
    ],
  },
  {
    name: "alternate axes of four",
    shape: [3, 4, 5, 2],
    strides: [
      [0, 10, 0, 1],
      [5, 0, 1, 0],
    ],
  },
  {
    name: "a row over many rows",
    shape: [LARGE, 2],
    strides: [
      [2, 1],
      [0, 1],
    ],
  },
  {
    name: "a column of few rows",
    shape: [2, LARGE],
    strides: [
      [LARGE, 1],
      [1, 0],
    ],
  },
  {
    name: "no rows",
    shape: [0, 3],
    strides: [
      [3, 1],
      [0, 1],
    ],
  },
  {
    name: "empty rows",
    shape: [3, 0],
    strides: [
      [0, 1],
      [1, 0],
    ],
  },
];

/** Elements that a stride list reaches. */
function extent(shape: readonly number[], strides: readonly number[]): number {
  if (shape.includes(0)) return 0;
  return 1 + shape.reduce((sum, size, axis) => sum + (size - 1) * strides[axis]!, 0);
}

/** Offset of output element `i` along a stride list. */
function offsetOf(i: number, shape: readonly number[], strides: readonly number[]): number {
  let rest = i;
  let offset = 0;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    offset += (rest % shape[axis]!) * strides[axis]!;
    rest = Math.floor(rest / shape[axis]!);
  }
  return offset;
}

export function mapContract(context: ContractContext): void {
  const { dtype, specials, tolerances } = context;
  const size = (shape: readonly number[]) => shape.reduce((product, length) => product * length, 1);

  async function checkOp(op: Op, length: number, seed: number, inPlace: number | undefined) {
    const program = programOf(op);
    const transcendental = (TRANSCENDENTAL_OPS as readonly string[]).includes(op);
    const nonNegative = !specials && ["log", "sqrt", "pow", "log1p"].includes(op);
    const inputs = program.buffers.map((_, slot) => context.seeded(length, seed + slot, { specials, nonNegative }));
    const [a = [], b = [], c = []] = inputs;
    const expected = new Float64Array(length).map((_, i) => {
      if (op === "less" || op === "select") return evaluateOp("less", dtype, a[i]!, b[i]) ? a[i]! : b[i]!;
      return evaluateOp(op, dtype, a[i]!, b[i], c[i]);
    });
    const names = program.buffers;
    const named = (kept: (slot: number) => boolean) =>
      Object.fromEntries(names.flatMap((name, slot) => (kept(slot) ? [[name, inputs[slot]!]] : [])));
    const target = inPlace === undefined ? "output" : names[inPlace]!;
    await context.check(
      { kind: "map", program, dtype },
      {
        input: named((slot) => slot !== inPlace),
        update: named((slot) => slot === inPlace),
        ...(inPlace === undefined ? { output: { output: context.empty(length) } } : {}),
      },
      (slices) => ({
        inputs: names.map((name) => slices[name]!),
        output: slices[target]!,
        scalars: [],
        shape: [length],
        strides: names.map(() => [1]),
      }),
      (results, label) => {
        const tolerance = transcendental ? tolerances.transcendental : tolerances.map;
        expect(results[target], `${length} elements, ${label}`).toAgreeWith(expected, tolerance);
      },
    );
  }

  describe("map", () => {
    it.each(context.cases([...RULE_OPS, ...TRANSCENDENTAL_OPS]))("computes %s", async (op) => {
      for (const length of [...SIZES, 64]) await checkOp(op, length, 100 + length, undefined);
    });

    it.each(["add", "sqrt", "fma", "exp", "pow"] as const)("computes %s in place of each operand", async (op) => {
      for (let slot = 0; slot < ARITY[op]; slot++) await checkOp(op, 1027, 200, slot);
    });

    it.each(
      context.cases([
        ["mul", LARGE],
        ["tanh", LARGE],
      ] as const),
    )("computes %s of more than 65,535 elements", (op, size) => checkOp(op, size, 300, undefined));

    it.each(context.cases(BROADCASTS))("broadcasts $name", async ({ shape, strides }) => {
      const inputs = strides.map((list, slot) => context.seeded(extent(shape, list), 400 + slot, { specials }));
      const s = 0.7;
      const product = (slot: number, i: number, factor: number) =>
        evaluateOp(
          "mul",
          dtype,
          inputs[slot]![offsetOf(i, shape, strides[slot]!)]!,
          evaluateOp("add", dtype, factor, -0),
        );
      const expected = new Float64Array(size(shape)).map((_, i) =>
        evaluateOp("add", dtype, product(0, i, s), product(1, i, -0.1)),
      );
      await context.check(
        { kind: "map", program: scaledSum, dtype },
        { input: { a: inputs[0]!, b: inputs[1]! }, output: { output: context.empty(size(shape)) } },
        ({ a, b, output }) => ({ inputs: [a, b], output, scalars: [s], shape, strides }),
        ({ output }, label) => expect(output, label).toAgreeWith(expected, tolerances.map),
      );
    });

    it("broadcasts a row onto its own output in place", async () => {
      const shape = [19, 7];
      const a = context.seeded(19 * 7, 500, { specials });
      const b = context.seeded(7, 501, { specials });
      const expected = Float64Array.from(a, (x: number, i: number) => evaluateOp("add", dtype, x, b[i % 7]!));
      await context.check(
        { kind: "map", program: programOf("add"), dtype },
        { input: { b }, update: { a } },
        ({ a: target, b: row }) => ({
          inputs: [target, row],
          output: target,
          scalars: [],
          shape,
          strides: [
            [7, 1],
            [0, 1],
          ],
        }),
        (results, label) => expect(results.a, label).toAgreeWith(expected, tolerances.map),
      );
    });

    it("reads one input twice", async () => {
      const a = context.seeded(65, 502, { specials });
      const expected = Float64Array.from(a, (x: number) => evaluateOp("mul", dtype, x, x));
      await context.check(
        { kind: "map", program: programOf("mul"), dtype },
        { input: { a }, output: { output: context.empty(65) } },
        ({ a: x, output }) => ({ inputs: [x, x], output, scalars: [], shape: [65], strides: [[1], [1]] }),
        ({ output }, label) => expect(output, label).toAgreeWith(expected, tolerances.map),
      );
    });
  });
}

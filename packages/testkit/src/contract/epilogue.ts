/** Epilogues and sums of matrix products: the bits of a map or a reduction that is launched after the product. */
import type { Node, Op, Program, Slice, TypedArray } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import { type ContractContext, LARGE } from "./context";
import { guardedLaunch } from "./guarded-launch";
import "../numbers/matcher";

type Sizes = readonly [batch: number, m: number, n: number, k: number];
type Strides = readonly [batch: number, row: number, column: number];
type Step = readonly [op: Op, ...args: number[]] | number;

/** Buffers, scalars, then steps: constants and ops on what came before. The last step is stored. */
function programOf(buffers: number, scalars: number, ...steps: readonly Step[]): Program {
  const leaf = (op: Node["op"], value: number): Node => ({ op, args: [], value, uniform: op !== "buffer" });
  const nodes = [
    ...Array.from({ length: buffers }, (_, slot) => leaf("buffer", slot)),
    ...Array.from({ length: scalars }, (_, slot) => leaf("scalar", slot)),
  ];
  for (const step of steps) {
    if (typeof step === "number") nodes.push(leaf("constant", step));
    else {
      const [op, ...args] = step;
      nodes.push({ op, args, value: 0, uniform: args.every((arg) => nodes[arg]!.uniform) });
    }
  }
  const name = (prefix: string) => (_: unknown, slot: number) => `${prefix}${slot}`;
  return {
    buffers: Array.from({ length: buffers }, name("x")),
    scalars: Array.from({ length: scalars }, name("s")),
    nodes,
    outputs: [{ slot: 0, node: nodes.length - 1 }],
  };
}

interface Case {
  readonly name: string;
  readonly program: Program;
  /** Of each operand. */
  readonly strides: readonly ((m: number, n: number) => Strides)[];
  readonly scalars?: readonly number[];
  /** Keeps the product. */
  readonly kept?: boolean;
  /** The output is its last operand. */
  readonly inPlace?: boolean;
}

const ofColumns = (): Strides => [0, 0, 1];
const dense = (m: number, n: number): Strides => [m * n, n, 1];
const SUM = programOf(2, 0, ["add", 0, 1]);
const RELU = programOf(2, 0, ["add", 0, 1], 0, ["max", 2, 3]);
const GELU = programOf(
  2,
  0,
  ["add", 0, 1],
  ...([Math.SQRT1_2, ["mul", 2, 3], ["erf", 4], 1, ["add", 6, 5], 0.5, ["mul", 8, 7], ["mul", 2, 9]] as const),
);
const SCALED = programOf(1, 1, ["mul", 0, 1]);
const THREE = programOf(4, 1, ["fma", 0, 1, 2], ["mul", 5, 4], ["sub", 6, 3]);

const CASES: readonly Case[] = [
  { name: "a bias", program: SUM, strides: [ofColumns] },
  { name: "a bias and gelu", program: GELU, strides: [ofColumns] },
  { name: "a bias and relu, the product kept", program: RELU, strides: [ofColumns], kept: true },
  { name: "a residual", program: SUM, strides: [dense] },
  { name: "a residual that is the output", program: SUM, strides: [dense], inPlace: true },
  {
    name: "a residual that is the output, the product kept",
    program: SUM,
    strides: [dense],
    inPlace: true,
    kept: true,
  },
  { name: "a scalar", program: SCALED, strides: [], scalars: [0.7] },
  { name: "nothing but the product", program: programOf(1, 0), strides: [] },
  {
    name: "a number of each item, one of each row and a transposed matrix",
    program: THREE,
    strides: [() => [1, 0, 0], () => [0, 1, 0], (m, n) => [m * n, 1, m]],
    scalars: [-3],
  },
];

/** batch, m, n, k: around every block, shared out by items, by rows and by columns. */
const SHAPES: readonly Sizes[] = [
  [1, 1, 1, 1],
  [1, 3, 5, 17],
  [1, 64, 96, 64],
  [1, 49, 130, 257],
  [1, 13, 71, 1100],
  [1, 1030, 18, 90],
  [2, 131, 150, 21],
  [3, 8, 8, 8],
  [19, 17, 35, 130],
  [37, 1, 260, 90],
  [2, 1027, 1, 9],
  [LARGE, 1, 1, 2],
  [1, 2, LARGE, 3],
  [1, 0, 3, 2],
  [0, 2, 2, 2],
  [2, 30, 40, 0],
];

const TRANSPOSES = [
  { transposeA: true, transposeB: false },
  { transposeA: false, transposeB: true },
  { transposeA: true, transposeB: true },
] as const;

export function epilogueContract(context: ContractContext): void {
  const { dtype } = context;

  async function checkEpilogue(
    { program, strides, scalars = [], kept = false, inPlace = false }: Case,
    [batch, m, n, k]: Sizes,
    transposes = { transposeA: false, transposeB: false },
  ) {
    const shape = [batch, m, n];
    const size = batch * m * n;
    const walks = strides.map((walk) => walk(m, n));
    const reach = (walk: Strides) => (size === 0 ? 0 : 1 + shape.reduce((sum, e, d) => sum + (e - 1) * walk[d]!, 0));
    const operands = walks.map((walk, i) => context.seeded(reach(walk), 3 + i, { specials: context.specials }));
    const names = operands.map((_, i) => (inPlace && i === operands.length - 1 ? "output" : `operand${i}`));
    const named = Object.fromEntries(operands.map((operand, i) => [names[i], operand]));
    const { output: last, ...others } = named;
    const ab = { a: context.seeded(batch * m * k, 1), b: context.seeded(batch * k * n, 2) };
    const empty = context.empty(size);
    const sizes = { batch, m, n, k, strideA: m * k, strideB: k * n };
    const plain = { kind: "matmul", ...transposes, dtype } as const;

    const { product } = await guardedLaunch(
      context.backend,
      context.kernel(plain),
      { input: ab, output: { product: empty } },
      "apart",
      ({ a, b, product: output }) => ({ a, b, output, ...sizes }),
    );
    const { mapped } = await guardedLaunch(
      context.backend,
      context.kernel({ kind: "map", program, dtype }),
      { input: { product: product!, ...named }, output: { mapped: empty } },
      "apart",
      (slices) => ({
        inputs: [slices.product!, ...names.map((name) => slices[name]!)],
        output: slices.mapped!,
        scalars,
        shape,
        strides: [dense(m, n), ...walks],
      }),
    );
    await context.check(
      { ...plain, epilogue: program },
      {
        input: { ...ab, ...others },
        ...(last && { update: { output: last } }),
        output: { ...(last ? {} : { output: empty }), ...(kept && { product: empty }) },
      },
      (slices: Record<string, Slice>) => {
        const operands = names.map((name) => slices[name]!);
        const epilogue = { operands, strides: walks, scalars, ...(kept && { product: slices.product! }) };
        return { a: slices.a!, b: slices.b!, output: slices.output!, ...sizes, epilogue };
      },
      (results: Record<string, TypedArray>, label) => {
        expect(results.output, label).toAgreeWith(mapped!);
        if (kept) expect(results.product, `product, ${label}`).toAgreeWith(product!);
      },
    );
  }

  it.each([
    [43, 50, 300],
    [7, 1, 2],
    // In three pieces.
    [130, 64, dtype === "f32" ? 1100 : 550],
    [3, 2, 0],
  ] as const)("matmul with the sums of %d rows, times %d columns, over %d", async (m, n, k) => {
    const a = context.seeded(m * k, 1, { specials: context.specials });
    const b = context.seeded(n * k, 2);
    const sizes = { batch: 1, m, n, k, strideA: m * k, strideB: k * n };
    const plain = { kind: "matmul", transposeA: true, transposeB: false, dtype } as const;
    const expected = await guardedLaunch(
      context.backend,
      context.kernel(plain),
      { input: { a, b }, output: { output: context.empty(m * n) } },
      "apart",
      (slices) => ({ ...slices, ...sizes }),
    );
    const { sums } = await guardedLaunch(
      context.backend,
      context.kernel({ kind: "reduce", op: "sum", dtype }),
      { input: { a }, output: { sums: context.empty(m) } },
      "apart",
      (slices) => ({ input: slices.a, output: slices.sums, outer: 1, length: k, inner: m }),
    );
    await context.check(
      { ...plain, sums: true },
      { input: { a, b }, output: { output: context.empty(m * n), sums: context.empty(m) } },
      (slices) => ({ ...slices, ...sizes }),
      (results, label) => {
        expect(results.output, label).toAgreeWith(expected.output);
        expect(results.sums, `sums, ${label}`).toAgreeWith(sums);
      },
    );
  });

  describe.each(CASES)("matmul with the epilogue: $name", (epilogue) => {
    it.each(context.sample(SHAPES))("%d x [%d, %d] over %d", (...shape) => checkEpilogue(epilogue, shape));
    it.each(context.sample(TRANSPOSES))("transposeA $transposeA, transposeB $transposeB", async (transposes) => {
      for (const shape of [
        [2, 43, 50, 300],
        [5, 7, 9, 11],
        [1, 300, 1, 600],
      ] as const) {
        await checkEpilogue(epilogue, shape, transposes);
      }
    });
  });
}

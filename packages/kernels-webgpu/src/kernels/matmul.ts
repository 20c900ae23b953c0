/**
 * Batched matrix products. Tiles of both operands pass through workgroup memory as vectors of four, and every invocation keeps
 * 4 x 4 or 8 x 8 results in registers; products that are too thin for tiles have an invocation for each result.
 */
import { indent, type Launch, type Spec, type Specs } from "@opt/core/backend";
import type { Execution, KernelSource } from "../kernel";
import { type SharedDType, sharedDType, sumInTurns } from "../shader/group";
import { LANES, type Parameter, type Shader } from "../shader/shader";

/** Depth of a tile. */
const DEPTH = 16;

const PARAMS: Readonly<Record<string, Parameter>> = {
  batch: "u32",
  m: "u32",
  n: "u32",
  k: "u32",
  stride_a: "u32",
  stride_b: "u32",
};

type Transposes = Pick<Specs["matmul"], "transposeA" | "transposeB">;

function operands({ transposeA, transposeB }: Transposes): string {
  return [
    `fn at_a(row: u32, depth: u32) -> u32 { return ${transposeA ? "depth * params.m + row" : "row * params.k + depth"}; }`,
    `fn at_b(depth: u32, column: u32) -> u32 { return ${transposeB ? "column * params.k + depth" : "depth * params.n + column"}; }`,
  ].join("\n");
}

/** Reads four neighbours of a tile, 0 beyond the matrix. */
const readsOf = (type: SharedDType) => `
fn read_a(base: u32, row: u32, depth: u32) -> ${type} {
  if (row >= params.m || depth >= params.k) { return ${type}(0); }
  return a(base + at_a(row, depth));
}
fn read_b(base: u32, depth: u32, column: u32) -> ${type} {
  if (depth >= params.k || column >= params.n) { return ${type}(0); }
  return b(base + at_b(depth, column));
}`;

/** Loads a tile so that neighbouring invocations read neighbouring elements: along the depth, or along four rows or columns. */
function load(type: SharedDType, tile: "a" | "b", quads: number, invocations: number, alongDepth: boolean): string[] {
  const read = (q: number) =>
    tile === "a"
      ? `read_a(base_a, first_row + 4u * quad + ${q}u, first + depth)`
      : `read_b(base_b, first + depth, first_column + 4u * quad + ${q}u)`;
  const [depth, quad] = alongDepth
    ? [`slot % ${DEPTH}u`, `slot / ${DEPTH}u`]
    : [`slot / ${quads}u`, `slot % ${quads}u`];
  return [
    `for (var slot = lane; slot < ${DEPTH * quads}u; slot += ${invocations}u) {`,
    `  let depth = ${depth};`,
    `  let quad = ${quad};`,
    `  tile_${tile}[depth * ${quads}u + quad] = vec4<${type}>(`,
    ...[0, 1, 2, 3].map((q) => `    ${read(q)},`),
    "  );",
    "}",
  ];
}

/** Tiles of `side` rows and columns, in which every invocation has `each` quads of either, `side / 4 / each` quads apart. */
export function tiledShader(transposes: Transposes, side: number, each: 1 | 2, type: SharedDType = "f32"): Shader {
  const quads = side / 4;
  const span = quads / each;
  const invocations = span * span;
  const parts = Array.from({ length: each }, (_, part) => part);
  const rows = parts.flatMap((part) => [0, 1, 2, 3].map((r) => ({ part, r, first: 4 * span * part + r })));
  return {
    name: `matmul in tiles of ${side}`,
    slices: { a: type, b: type, output: type },
    params: PARAMS,
    lanes: invocations,
    declarations: [
      `var<workgroup> tile_a: array<vec4<${type}>, ${DEPTH * quads}>;`,
      `var<workgroup> tile_b: array<vec4<${type}>, ${DEPTH * quads}>;`,
      operands(transposes) + readsOf(type),
    ].join("\n"),
    body: () =>
      [
        `let tiles_x = (params.n + ${side - 1}u) / ${side}u;`,
        `let tiles_y = (params.m + ${side - 1}u) / ${side}u;`,
        "let item = group / (tiles_x * tiles_y);",
        "if (item >= params.batch) { return; }",
        `let first_row = group / tiles_x % tiles_y * ${side}u;`,
        `let first_column = group % tiles_x * ${side}u;`,
        "let base_a = item * params.stride_a;",
        "let base_b = item * params.stride_b;",
        `let quad_x = lane % ${span}u;`,
        `let quad_y = lane / ${span}u;`,
        ...rows.flatMap(({ part, r }) => parts.map((column) => `var sum${part}${r}${column} = vec4<${type}>();`)),
        `for (var first = 0u; first < params.k; first += ${DEPTH}u) {`,
        ...indent(load(type, "a", quads, invocations, !transposes.transposeA)),
        ...indent(load(type, "b", quads, invocations, transposes.transposeB)),
        "  workgroupBarrier();",
        `  for (var depth = 0u; depth < ${DEPTH}u; depth++) {`,
        ...parts.map((part) => `    let column${part} = tile_a[depth * ${quads}u + quad_y + ${span * part}u];`),
        ...parts.map((part) => `    let row${part} = tile_b[depth * ${quads}u + quad_x + ${span * part}u];`),
        ...rows.flatMap(({ part, r }) =>
          parts.map((column) => `    sum${part}${r}${column} += column${part}[${r}] * row${column};`),
        ),
        "  }",
        "  workgroupBarrier();",
        "}",
        "let row = first_row + 4u * quad_y;",
        "let column = first_column + 4u * quad_x;",
        ...rows.flatMap(({ part, r, first }) =>
          parts.map((at) => `put_row(item, row + ${first}u, column + ${4 * span * at}u, sum${part}${r}${at});`),
        ),
      ].join("\n"),
  };
}

/** Stores four results of one row, as far as the matrix reaches. */
const putRowOf = (type: SharedDType) => `
fn put_row(item: u32, row: u32, column: u32, sums: vec4<${type}>) {
  if (row >= params.m) { return; }
  let base = (item * params.m + row) * params.n;
  for (var q = 0u; q < 4u; q++) {
    if (column + q < params.n) { put_output(base + column + q, sums[q]); }
  }
}`;

export function thinShader(transposes: Transposes, type: SharedDType = "f32"): Shader {
  return {
    name: "matmul",
    slices: { a: type, b: type, output: type },
    params: PARAMS,
    declarations: operands(transposes),
    body: () =>
      [
        `let i = group * ${LANES}u + lane;`,
        "if (i >= params.batch * params.m * params.n) { return; }",
        "let column = i % params.n;",
        "let row = i / params.n % params.m;",
        "let item = i / (params.m * params.n);",
        `var sum = ${type}(0);`,
        ...sumInTurns(
          "sum",
          { index: "depth", start: "0u", end: "params.k", step: "1u", type },
          [],
          "a(item * params.stride_a + at_a(row, depth)) * b(item * params.stride_b + at_b(depth, column))",
        ),
        "put_output(i, sum);",
      ].join("\n"),
  };
}

interface PreparedMatmul {
  readonly small: Shader;
  readonly large: Shader;
  readonly thin: Shader;
}

/** Sides of tiles, and what is too thin for them. */
const SMALL = 32;
const LARGE = 64;
const THIN = 16;

export const matmul: KernelSource<"matmul", PreparedMatmul> = {
  prepare(spec: Spec<"matmul">) {
    const type = sharedDType(spec.dtype);
    const withRows = (shader: Shader): Shader => ({ ...shader, declarations: shader.declarations + putRowOf(type) });
    return {
      small: withRows(tiledShader(spec, SMALL, 1, type)),
      large: withRows(tiledShader(spec, LARGE, 2, type)),
      thin: thinShader(spec, type),
    };
  },

  launch(launch: Launch<"matmul">, { small, large, thin }: PreparedMatmul, execution: Execution) {
    const { a, b, output, batch, m, n, k, strideA: stride_a, strideB: stride_b } = launch;
    const size = batch * m * n;
    if (size === 0) return;
    const params = { batch, m, n, k, stride_a, stride_b };
    if (Math.min(m, n) < THIN) {
      execution.dispatch(thin, [a, b, output], params, Math.ceil(size / LANES));
      return;
    }
    const side = Math.min(m, n) > 2 * LARGE ? LARGE : SMALL;
    const tiles = batch * Math.ceil(m / side) * Math.ceil(n / side);
    execution.dispatch(side === LARGE ? large : small, [a, b, output], params, tiles);
  },
};

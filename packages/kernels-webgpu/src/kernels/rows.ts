/** Row programs: short rows have an invocation each, long ones a workgroup. All in float32, and nothing is kept: exponentials are cheap. */
import {
  block,
  type Dialect,
  indent,
  type Launch,
  neededFor,
  type ResultOfRow,
  type RowElement,
  type RowProgram,
  RowWriter,
  resultsOfColumns,
  resultsOfRows,
  rootsOf,
  type Spec,
} from "@opt/core/backend";
import { libraryOf } from "../emit/functions";
import { NON_FINITE, wgsl } from "../emit/wgsl";
import type { Execution, KernelSource, Target } from "../kernel";
import { IS_NAN, LARGER, largestOfLanes, sharedValues, sumInTurns, sumOfLanes } from "../shader/group";
import { LANES, type Shader, type View } from "../shader/shader";

/** Longer rows are worth a workgroup. */
const SHORT = 64;
/** Rows that one invocation adds up for a column. */
const ROWS = 64;

interface RowShaders {
  /** None of a program that has columns alone. */
  readonly short?: Shader;
  readonly long?: Shader;
  readonly columns?: Shader;
}

/** There is no float64. */
const dialect: Dialect = {
  ...wgsl,
  ops: Object.fromEntries(
    Object.entries(wgsl.ops).map(([op, { f32 }]) => [op, { f32, f64: f32 }]),
  ) as unknown as Dialect["ops"],
};

const place = (kind: string, index: string) =>
  kind === "matrix" ? `first + ${index}` : kind === "number" ? "row" : index;

/** A loop over the elements of a row. */
const overRow = (lanes: number) => (lines: readonly string[]) => {
  const steps = lanes === 1 ? "var i = 0u; i < params.length; i++" : `var i = lane; i < params.length; i += ${lanes}u`;
  return block(`for (${steps})`, lines);
};

function writerOf(program: RowProgram, lanes = 1): RowWriter {
  return new RowWriter(program, {
    dialect,
    dtype: "f32",
    constant: (value) => wgsl.constant(value, "f32"),
    declare: (name, value) => `let ${name} = ${value};`,
    convert: (value) => value,
    scalar: (slot) => `params.scalar${slot}`,
    call: (name, x) => (name === "log" ? `logarithm(${x})` : `exponential(${x})`),
    input: (slot, index) => `input${slot}(${place(program.inputs[slot]!.kind, index)})`,
    kept: () => "",
    reduce(op, name, { lines, value }: RowElement) {
      const own = `own_${name}`;
      const places = { index: "i", start: lanes === 1 ? "0u" : "lane", end: "params.length", step: `${lanes}u` };
      return [
        `var ${own} = ${op === "sum" ? "0f" : "bitcast<f32>(minusInfinityBits)"};`,
        ...(op === "sum"
          ? sumInTurns(own, places, lines, value)
          : overRow(lanes)([...lines, `${own} = larger(${own}, ${value});`])),
        `let ${name} = ${op}_of_lanes(${own}, lane);`,
      ];
    },
  });
}

function slicesOf({ inputs, labels }: RowProgram, results: readonly ResultOfRow[]): Record<string, View> {
  return Object.fromEntries([
    ...inputs.map((_, slot) => [`input${slot}`, "f32"]),
    ...(labels ? [["labels", "i32"]] : []),
    ...results.map(({ slot }) => [`output${slot}`, "f32"]),
  ]);
}

const scalarsOf = ({ scalars }: RowProgram) =>
  Object.fromEntries(scalars.map((_, slot) => [`scalar${slot}`, "f32" as const]));

function rowShader(program: RowProgram, lanes: number, subgroups: boolean): Shader {
  const each = overRow(lanes);
  const writer = writerOf(program, lanes);
  const results = resultsOfRows(program);
  const roots = rootsOf(results);
  const numbers = writer.numbers(roots);
  const stored = results.flatMap(({ kind, node, atLabel, slot }) => {
    const { lines, value } = kind === "number" ? { lines: [], value: `n${node}` } : writer.element(node, "i");
    const special = atLabel === undefined ? value : `select(${value}, n${atLabel}, i == label)`;
    const text = program.labels ? `select(${special}, missing, is_missing)` : special;
    const put = [...lines, `put_output${slot}(${place(kind, "i")}, ${text});`];
    return kind === "number" ? put : each(put);
  });
  // Barriers follow: rows without a label are computed as if it were 0.
  const labels = [
    "let given = labels(row);",
    "let is_ignored = given == params.ignore;",
    "let is_missing = is_ignored || given < 0 || given >= i32(params.length);",
    "let missing = select(bitcast<f32>(nanBits), 0f, is_ignored);",
    "let label = select(u32(given), 0u, is_missing);",
  ];
  const uses = (op: string) => neededFor(program.nodes, roots).some((n) => program.nodes[n]!.op === op);
  const usesSubgroups = subgroups && lanes > 1 && uses("sum");
  const declarations = [
    NON_FINITE,
    uses("sum") || uses("largest") ? sharedValues(lanes) : "",
    uses("largest") ? `${IS_NAN}\n${LARGER.f32}${largestOfLanes(lanes)}` : "",
    uses("sum") ? sumOfLanes(lanes, usesSubgroups) : "",
  ].filter((text) => text !== "");
  const library = libraryOf([...numbers, ...stored].join("\n"), declarations.join("\n"));
  return {
    name: program.name,
    slices: slicesOf(program, results),
    params: { rows: "u32", length: "u32", ...(program.labels && { ignore: "i32" }), ...scalarsOf(program) },
    subgroups: usesSubgroups,
    declarations: [...declarations, ...library].join("\n"),
    body: () =>
      [
        lanes === 1 ? `let row = group * ${LANES}u + lane;` : "let row = group;",
        "if (row >= params.rows) { return; }",
        "let first = row * params.length;",
        "let count = f32(params.length);",
        ...(program.labels ? labels : []),
        ...numbers,
        ...stored,
      ].join("\n"),
  };
}

/** Sums over `ROWS` rows of a column: into partial sums, which `TOTAL` adds up. */
function columnsShader(program: RowProgram): Shader {
  const writer = writerOf(program);
  const columns = resultsOfColumns(program);
  const terms = columns.flatMap(({ term, slot }) => {
    const { lines, value } = writer.element(term, "i");
    return ["{", ...indent([...lines, `sum${slot} += ${value};`]), "}"];
  });
  const perRow = writer.numbers(rootsOf(columns));
  const library = libraryOf([...perRow, ...terms].join("\n"));
  return {
    name: `${program.name}, columns`,
    slices: slicesOf(program, columns),
    params: { rows: "u32", length: "u32", parts: "u32", ...scalarsOf(program) },
    declarations: [NON_FINITE, ...library].join("\n"),
    body: () =>
      [
        `let item = group * ${LANES}u + lane;`,
        "if (item >= params.parts * params.length) { return; }",
        "let i = item % params.length;",
        `let start = item / params.length * ${ROWS}u;`,
        "let count = f32(params.length);",
        ...columns.map(({ slot }) => `var sum${slot} = 0f;`),
        ...block(`for (var row = start; row < min(start + ${ROWS}u, params.rows); row++)`, [
          "let first = row * params.length;",
          ...perRow,
          ...terms,
        ]),
        ...columns.map(({ slot }) => `put_output${slot}(item, sum${slot});`),
      ].join("\n"),
  };
}

const TOTAL: Shader = {
  name: "total of columns",
  slices: { sums: "f32", total: "f32" },
  params: { length: "u32", parts: "u32" },
  body: () =>
    [
      `let column = group * ${LANES}u + lane;`,
      "if (column >= params.length) { return; }",
      "var sum = 0f;",
      ...sumInTurns(
        "sum",
        { index: "k", start: "0u", end: "params.parts", step: "1u" },
        [],
        "sums(k * params.length + column)",
      ),
      "put_total(column, sum);",
    ].join("\n"),
};

export const rows: KernelSource<"rows", RowShaders> = {
  prepare: ({ program }: Spec<"rows">, { subgroups }: Target) => ({
    ...(resultsOfRows(program).length > 0 && {
      short: rowShader(program, 1, false),
      long: rowShader(program, LANES, subgroups),
    }),
    ...(resultsOfColumns(program).length > 0 && { columns: columnsShader(program) }),
  }),

  launch(launch: Launch<"rows">, { short, long, columns }: RowShaders, execution: Execution) {
    const { kernel, inputs, labels, outputs, scalars, rows, length, ignoreIndex } = launch;
    const { program } = kernel.spec;
    const outputsOf = (results: readonly ResultOfRow[]) => results.map(({ slot }) => outputs[slot]!);
    const read = [...inputs, ...(labels ? [labels] : [])];
    const params = { rows, length, ...Object.fromEntries(scalars.map((scalar, slot) => [`scalar${slot}`, scalar])) };
    if (rows > 0 && short && long) {
      const [shader, groups] = length <= SHORT ? [short, Math.ceil(rows / LANES)] : [long, rows];
      const own = labels ? { ...params, ignore: ignoreIndex } : params;
      execution.dispatch(shader, [...read, ...outputsOf(resultsOfRows(program))], own, groups);
    }
    if (length === 0 || !columns) return;
    const parts = Math.max(1, Math.ceil(rows / ROWS));
    const totals = outputsOf(resultsOfColumns(program));
    const sums = parts === 1 ? totals : totals.map(() => execution.scratch(parts * length));
    const groups = Math.ceil((parts * length) / LANES);
    execution.dispatch(columns, [...inputs, ...sums], { ...params, parts }, groups);
    if (parts === 1) return;
    totals.forEach((total, k) => {
      execution.dispatch(TOTAL, [sums[k]!, total], { length, parts }, Math.ceil(length / LANES));
    });
  },
};

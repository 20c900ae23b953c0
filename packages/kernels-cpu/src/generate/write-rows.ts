/** Writes row programs out as C++: a function over rows each, one over columns where it has such, and a table by hash. */
import {
  block,
  distinctByHash,
  indent,
  type ResultOfRow,
  type RowOutput,
  type RowProgram,
  RowWriter,
  resultsOfColumns,
  resultsOfRows,
  rootsOf,
} from "@opt/core/backend";
import { cpp } from "./dialect";

const loop = (lines: readonly string[], end = "length") => [
  "OPT_INDEPENDENT",
  ...block(`for (int64_t i = 0; i < ${end}; i++)`, lines),
];

/** For native/cpu/src/kernels/rows/rows.cc: the functions and their table; for the addon: the hashes in the table's order. */
export function writeAllRows(programs: readonly RowProgram[]): { readonly functions: string; readonly hashes: string } {
  const distinct = distinctByHash(programs);
  const entries = distinct.map((program) => {
    const { hash, nodes } = program;
    const functions = (name: string, exists: boolean) =>
      exists ? `${name}_${hash}<float>, ${name}_${hash}<double>` : "nullptr, nullptr";
    const work = nodes.some(({ op }) => op === "weight") ? 8 : 3;
    return `    {${functions("rows", resultsOfRows(program).length > 0)}, ${functions("columns", resultsOfColumns(program).length > 0)}, ${work}},`;
  });
  const most = Math.max(...distinct.flatMap(({ inputs, outputs }) => [inputs.length, outputs.length]));
  return {
    functions: [
      "// Written by @opt/kernels-cpu from the row programs of core.",
      "",
      `constexpr int MAX_SLICES = ${most};`,
      ...distinct.flatMap((program) => [...writeRows(program), ...writeColumns(program), ""]),
      `constexpr RowProgram ROW_PROGRAMS[] = {\n${entries.join("\n")}\n};`,
      "",
    ].join("\n"),
    hashes: distinct.map(({ hash, name }) => `"${hash}",  // ${name}\n`).join(""),
  };
}

function writerOf(program: RowProgram): RowWriter {
  return new RowWriter(program, {
    dialect: cpp,
    dtype: "f32",
    constant: (value, wide) => `${wide ? "double" : "T"}${cpp.constant(value, "f64").slice(1)}`,
    declare: (name, value, wide, kind) =>
      `const ${kind === "condition" ? "auto" : wide ? "double" : "T"} ${name} = ${value};`,
    convert: (value, wide) => `static_cast<${wide ? "double" : "T"}>(${value})`,
    scalar: (slot) => `given.scalars[${slot}]`,
    labels: { read: "const int64_t label = given.labels[row];", isIgnored: "label == given.ignored" },
    call: (name, x) => (name === "log" ? `logFor<T>(${x})` : `weightOf(${x})`),
    input: (slot, index) => `input${slot}[${program.inputs[slot]!.kind === "number" ? "row" : index}]`,
    kept: (slot, index) => `output${slot}[${index}]`,
    keep: (slot, { lines, value }) => loop([...lines, `output${slot}[i] = ${value};`]),
    reduce(op, name, { lines, value }) {
      const isInput = /^input\d+\[i\]$/.test(value);
      if (op === "largest" && isInput) return [`const T ${name} = largestOf(${value.slice(0, -3)}, length) + T(0);`];
      const isHeavy = [...lines, value].some((line) => line.includes("weightOf("));
      const over = op === "largest" ? "largestIn<T>" : isHeavy ? "sumOfBlocks" : "sumOf";
      return [
        `const ${op === "largest" ? "T" : "double"} ${name} = ${over}(length, [=](int64_t i) {`,
        ...indent([...lines, `return ${value};`]),
        "});",
      ];
    },
  });
}

/** Pointers to what a row, or a part of it from column `from` on, has of the slices of some kinds. */
function pointers({ inputs, outputs }: RowProgram, kinds: readonly RowOutput[], from = ""): string[] {
  const place = (kind: string) =>
    kind === "matrix" ? ` + row * length${from}` : kind === "vector" || kind === "columns" ? from : "";
  return [
    ...inputs.map(({ kind }, slot) => `[[maybe_unused]] const T* input${slot} = given.inputs[${slot}]${place(kind)};`),
    ...outputs.flatMap(({ kind }, slot) =>
      kinds.includes(kind) ? [`T* output${slot} = given.outputs[${slot}]${place(kind)};`] : [],
    ),
  ];
}

const head = (name: string, { hash }: RowProgram) => [
  "template <typename T>",
  `void ${name}_${hash}(const RowArguments<T>& given, int64_t begin, int64_t end) {`,
  "  const int64_t length = given.length;",
  "  [[maybe_unused]] const auto count = static_cast<double>(length);",
];

function writeRows(program: RowProgram): string[] {
  const outputs = resultsOfRows(program);
  if (outputs.length === 0) return [];
  const writer = writerOf(program);
  const each = (kind: RowOutput, value: (output: ResultOfRow) => string[]) =>
    outputs.filter((output) => output.kind === kind).flatMap(value);
  const missing = [
    "const T value = label == given.ignored ? T(0) : T(NAN);",
    ...each("matrix", ({ slot }) => [`for (int64_t i = 0; i < length; i++) output${slot}[i] = value;`]),
    ...each("number", ({ slot }) => [`output${slot}[row] = value;`]),
  ];
  const body = [
    ...pointers(program, ["matrix", "number"]),
    ...writer.label(missing),
    ...writer.numbers(rootsOf(outputs)),
    ...each("matrix", ({ slot, node, atLabel }) => {
      const { lines, value } = writer.element(node, "i");
      const stored = loop([...lines, `output${slot}[i] = ${value};`]);
      return atLabel === undefined ? stored : [...stored, `output${slot}[label] = n${atLabel};`];
    }),
    ...each("number", ({ slot, node }) => [`output${slot}[row] = n${node};`]),
  ];
  return [
    `// ${program.name}`,
    ...head("rows", program),
    ...indent(block("for (int64_t row = begin; row < end; row++)", body)),
    "}",
  ];
}

/** Columns `begin` to `end`, which are few enough for sums in the stack. */
function writeColumns(program: RowProgram): string[] {
  const columns = resultsOfColumns(program);
  if (columns.length === 0) return [];
  const writer = writerOf(program);
  const ofColumn = (line: (k: number, slot: number) => string) =>
    block(
      "for (int64_t i = 0; i < end - begin; i++)",
      columns.map(({ slot }, k) => line(k, slot)),
    );
  const terms = columns.map(({ term }, k) => {
    const { lines, value } = writer.element(term, "i");
    return ["{", ...indent([...lines, `sums[${k}][i] += ${value};`]), "}"];
  });
  const chunk = [
    "const int64_t last = smaller(given.rows, first + given.chunk);",
    ...block("for (int64_t row = first; row < last; row++)", [
      ...pointers(program, [], " + begin"),
      ...writer.numbers(rootsOf(columns)),
      ...loop(terms.flat(), "end - begin"),
    ]),
    "if (isOne) break;",
    ...ofColumn((k) => `totals[${k}][i] += sums[${k}][i], sums[${k}][i] = 0;`),
  ];
  return [
    ...head("columns", program),
    ...indent([
      `double totals[${columns.length}][COLUMNS] = {}, sums[${columns.length}][COLUMNS] = {};`,
      "const bool isOne = given.rows <= given.chunk;",
      ...block("for (int64_t first = 0; first < given.rows; first += given.chunk)", chunk),
      "const auto& results = isOne ? sums : totals;",
      ...ofColumn((k, slot) => `given.outputs[${slot}][begin + i] = static_cast<T>(results[${k}][i]);`),
    ]),
    "}",
  ];
}

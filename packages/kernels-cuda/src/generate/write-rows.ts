/** Writes row programs out as CUDA kernels: a block a row over the loops of native/cuda/kernels/block.cuh, a thread a column and chunk. */
import {
  block,
  type ComputeDType,
  distinctByHash,
  indent,
  keptWeights,
  type ResultOfRow,
  type RowElement,
  type RowProgram,
  RowWriter,
  resultsOfColumns,
  resultsOfRows,
  rootsOf,
} from "@opt/core/backend";
import { cuda, TYPE } from "./dialect";

/** The names of a program's kernels. */
export function rowKernelNames({ hash }: RowProgram, dtype: ComputeDType): { rows: string; columns: string } {
  return { rows: `rows_${hash}_${dtype}`, columns: `columns_${hash}_${dtype}` };
}

/** All kernels of some programs. Those that compute the same are written once. */
export function writeAllRows(programs: readonly RowProgram[]): string {
  const distinct = distinctByHash(programs);
  const kernels = distinct.flatMap((program) =>
    (["f32", "f64"] as const).flatMap((dtype) => [...writeRows(program, dtype), ...writeColumns(program, dtype), ""]),
  );
  return [
    "// Written by @opt/kernels-cuda from the row programs of core.",
    '#include "block.cuh"',
    "",
    ...kernels,
  ].join("\n");
}

const loop = (lines: readonly string[]) => block("for (Index i = threadIdx.x; i < length; i += blockDim.x)", lines);
const SYNC = "__syncthreads();";

function writerOf(program: RowProgram, dtype: ComputeDType): RowWriter {
  const type = (wide: boolean) => (wide ? "double" : TYPE[dtype]);
  return new RowWriter(program, {
    dialect: cuda,
    dtype,
    constant: (value, wide) => cuda.constant(value, wide ? "f64" : dtype),
    declare: (name, value, wide, kind) => `const ${kind === "condition" ? "bool" : type(wide)} ${name} = ${value};`,
    convert: (value, wide) =>
      dtype === "f64" ? value : wide ? `static_cast<double>(${value})` : `__double2float_rn(${value})`,
    scalar: (slot) => `scalar${slot}`,
    labels: { read: "const Index label = labels[row];", isIgnored: "label == ignored" },
    call: (name, x) => `opt_${name === "log" && dtype === "f32" ? "log_wide" : name}(${x})`,
    input: (slot, index) => `input${slot}${place(program.inputs[slot]!.kind, index)}`,
    kept: (slot, index) => `output${slot}${place("matrix", index)}`,
    keep: (slot, { lines, value }) => [...loop([...lines, `output${slot}${place("matrix", "i")} = ${value};`]), SYNC],
    reduce: (op, name, { lines, value }: RowElement) => [
      `const ${type(op === "sum")} ${name} = ${op === "sum" ? "sumOver(length" : `largestOver<${type(false)}>(length`}, [=](Index i) {`,
      ...indent([...lines, `return ${value};`]),
      "});",
    ],
  });
}

const place = (kind: string, index: string) =>
  kind === "matrix" ? `[row * length + ${index}]` : `[${kind === "number" ? "row" : index}]`;

/** Every kernel takes what the launch has. */
function head(name: string, { inputs, outputs, scalars }: RowProgram, dtype: ComputeDType): string {
  const type = TYPE[dtype];
  const slices = [
    ...inputs.map((_, slot) => `const ${type}* input${slot}`),
    ...outputs.map((_, slot) => `${type}* output${slot}`),
  ];
  const sizes = ["const int* labels", "double* partials", "Index rows", "Index length", "Index ignored"];
  return `OPT_KERNEL(${name})(${[...slices, ...sizes, ...scalars.map((_, slot) => `double scalar${slot}`)].join(", ")})`;
}

const COUNT = "[[maybe_unused]] const auto count = static_cast<double>(length);";

function writeRows(program: RowProgram, dtype: ComputeDType): string[] {
  const outputs = resultsOfRows(program);
  if (outputs.length === 0) return [];
  const writer = writerOf(program, dtype);
  const store = (value: (output: ResultOfRow) => RowElement) =>
    outputs.flatMap((output) => {
      const { lines, value: text } = value(output);
      const stored = [...lines, `output${output.slot}${place(output.kind, "i")} = ${text};`];
      return output.kind === "matrix" ? loop(stored) : block("if (threadIdx.x == 0)", stored);
    });
  const missing = `(label == ignored ? ${cuda.constant(0, dtype)} : ${cuda.constant(Number.NaN, dtype)})`;
  const label = writer.label(store(() => ({ lines: [], value: missing })));
  const numbers = writer.numbers(rootsOf(outputs));
  const results = store(({ kind, node, atLabel }) => {
    if (kind === "number") return { lines: [], value: `n${node}` };
    const { lines, value } = writer.element(node, "i");
    return { lines, value: atLabel === undefined ? value : `i == label ? n${atLabel} : ${value}` };
  });
  // What is kept is overwritten when all threads have read it.
  const isReadAtLabel = program.labels && keptWeights(program).size > 0;
  const body = [...label, ...numbers, ...(isReadAtLabel ? [SYNC] : []), ...results];
  return [
    `// ${program.name}`,
    ...block(head(rowKernelNames(program, dtype).rows, program, dtype), [
      COUNT,
      ...block("for (Index row = blockIdx.x; row < rows; row += gridDim.x)", body),
    ]),
  ];
}

/** The sums of each chunk of rows, to `partials` as [chunks, columns outputs, length]; columns.cu adds them. */
function writeColumns(program: RowProgram, dtype: ComputeDType): string[] {
  const columns = resultsOfColumns(program);
  if (columns.length === 0) return [];
  const writer = writerOf(program, dtype);
  const terms = columns.flatMap(({ term }, k) => {
    const { lines, value } = writer.element(term, "i");
    return block("", [...lines, `sum${k} += ${value};`]);
  });
  return block(head(rowKernelNames(program, dtype).columns, program, dtype), [
    COUNT,
    "const Index chunk = rowsOfChunk(length), chunks = (rows + chunk - 1) / chunk;",
    ...block("for (Index e = firstElement(); e < length * chunks; e += elementStride())", [
      "const Index i = e % length, first = e / length * chunk, end = first + chunk < rows ? first + chunk : rows;",
      ...columns.map((_, k) => `double sum${k} = 0;`),
      ...block("for (Index row = first; row < end; row++)", [...writer.numbers(rootsOf(columns)), ...terms]),
      ...columns.map((_, k) => `partials[(e / length * ${columns.length} + ${k}) * length + i] = sum${k};`),
    ]),
  ]);
}

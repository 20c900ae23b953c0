/** Row programs on the js device: as text where functions may be made of it, else by the interpreter. */
import type { Launch } from "../backend/spec";
import { block } from "../emit/blocks";
import { javascript } from "../emit/javascript";
import { type RowElement, RowWriter } from "../emit/rows";
import { resultsOfColumns, resultsOfRows, rootsOf } from "../rule/rows/results";
import type { RowProgram } from "../rule/rows/row-program";
import type { ComputeDType } from "../values/dtype";
import { generated } from "./generated";
import { interpretRows, type RowArrays } from "./interpret-rows";
import { elements } from "./memory";

export type RowsFunction = (launch: RowArrays) => void;

const functions = new WeakMap<RowProgram, Map<ComputeDType, RowsFunction>>();

/** What `compileRows` gives, made once. */
export function rowsFunction(program: RowProgram, dtype: ComputeDType): RowsFunction {
  const made = functions.get(program) ?? new Map<ComputeDType, RowsFunction>();
  if (!made.has(dtype)) made.set(dtype, compileRows(program, dtype));
  functions.set(program, made);
  return made.get(dtype)!;
}

export function compileRows(program: RowProgram, dtype: ComputeDType): RowsFunction {
  return (
    (generated(
      ["{ inputs, labels, outputs, scalars, rows, length, ignoreIndex }"],
      writeRows(program, dtype),
    ) as RowsFunction) ?? ((launch) => interpretRows(program, dtype, launch))
  );
}

export function runRows(run: RowsFunction, { kernel, labels, ...launch }: Launch<"rows">): void {
  const { dtype } = kernel.spec;
  const arrays = {
    inputs: launch.inputs.map((slice) => elements(slice, dtype)),
    labels: labels && elements(labels, "i32"),
    outputs: launch.outputs.map((slice) => elements(slice, dtype)),
  };
  run({ ...launch, ...arrays });
}

const eachElement = (lines: readonly string[]) => block("for (let i = 0; i < length; i++)", lines);

/** The body of a function over all rows. */
function writeRows(program: RowProgram, dtype: ComputeDType): string {
  const { inputs, outputs } = program;
  const [f32, base] = [dtype === "f32", "row * length"];
  const place = (kind: string, index: string) =>
    kind === "matrix" ? `[${base} + ${index}]` : kind === "number" ? "[row]" : `[${index}]`;
  const constant = (value: number, wide: boolean) => javascript.constant(value, wide ? "f64" : dtype);
  const writer = new RowWriter(program, {
    dialect: javascript,
    dtype,
    constant,
    declare: (name, value) => `const ${name} = ${value};`,
    convert: (value, wide) => (wide || !f32 ? value : `fround(${value})`),
    scalar: (slot) => `scalars[${slot}]`,
    labels: { read: "const label = labels[row];", isIgnored: "label === ignoreIndex" },
    call: (name, x) => `${f32 ? `${name}32` : name === "log" ? name : "exp"}(${x})`,
    input: (slot, index) => `input${slot}${place(inputs[slot]!.kind, index)}`,
    kept: (slot, index) => `output${slot}${place("matrix", index)}`,
    keep: (slot, { lines, value }) => eachElement([...lines, `output${slot}${place("matrix", "i")} = ${value};`]),
    reduce: (op, name, element) => (op === "sum" ? writeSum : writeLargest)(name, element),
  });
  const put = (slot: number, value: string, index = "i") =>
    `output${slot}${place(outputs[slot]!.kind, index)} = ${value};`;
  const text = [
    ...inputs.map((_, slot) => `const input${slot} = inputs[${slot}];`),
    ...outputs.map((_, slot) => `const output${slot} = outputs[${slot}];`),
    "const count = length;",
  ];
  const results = resultsOfRows(program);
  if (results.length > 0) {
    const missing = results.map(({ kind, slot }) =>
      kind === "number" ? put(slot, "value") : `output${slot}.fill(value, ${base}, ${base} + length);`,
    );
    const numbers = writer.numbers(rootsOf(results));
    const stored = results.flatMap(({ kind, node, slot }) => {
      if (kind === "number") return [];
      const { lines, value } = writer.element(node, "i");
      return eachElement([...lines, put(slot, value)]);
    });
    text.push(
      ...block("for (let row = 0; row < rows; row++)", [
        ...writer.label(["const value = label === ignoreIndex ? 0 : NaN;", ...missing]),
        ...numbers,
        ...stored,
        ...results.flatMap(({ kind, node, atLabel, slot }) => {
          if (kind === "number") return [put(slot, `n${node}`)];
          return atLabel === undefined ? [] : [put(slot, `n${atLabel}`, "label")];
        }),
      ]),
    );
  }
  for (const { slot, node, term } of resultsOfColumns(program)) {
    const { lines, value } = writer.element(term, "i");
    const body = [...writer.numbers([node]), ...lines, `return ${value};`];
    text.push(`output${slot}.set(sumColumns(rows, length, (row, i) => {`, ...body, "}));");
  }
  return text.join("\n");
}

function writeSum(name: string, { lines, value }: RowElement): string[] {
  return [`const ${name} = sumOf(length, (i) => {`, ...lines, `return ${value};`, "});"];
}

function writeLargest(name: string, { lines, value }: RowElement): string[] {
  return [
    `let ${name} = -Infinity;`,
    ...eachElement([...lines, `const value = ${value};`, `if (value > ${name} || value !== value) ${name} = value;`]),
    `${name} += 0;`,
  ];
}

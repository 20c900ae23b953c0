import { expectCode } from "@opt/testkit";
import { describe, expect, it } from "vitest";
import { openJsBackend } from "../../backend";
import { interpretRows } from "../../js/interpret-rows";
import { crossEntropyGradRows, crossEntropyRows } from "../../rule/row-programs/cross-entropy";
import { layerNormGradRows, layerNormRows } from "../../rule/row-programs/layer-norm";
import { logSoftmaxGradRows, logSoftmaxRows, softmaxGradRows, softmaxRows } from "../../rule/row-programs/softmax";
import { add, exp, log, mul } from "../symbols";
import { atLabel, columns, defineRows, keptWeights, largest, sum } from "./row-program";

describe("defineRows", () => {
  it("hashes what is computed, not names", () => {
    const doubled = (name: string, [x, y]: [string, string]) =>
      defineRows({ name, inputs: { [x]: "matrix" }, rows: (inputs) => ({ [y]: mul(inputs[x]!, 2) }) });
    expect(doubled("one", ["x", "y"]).hash).toBe(doubled("two", ["a", "b"]).hash);
    expect(doubled("one", ["x", "y"]).hash).not.toBe(softmaxRows.hash);
  });

  it("computes with float64 numbers in float64, and rounds outputs", () => {
    const { nodes, outputs } = defineRows({
      name: "scaled",
      inputs: { x: "matrix" },
      scalars: ["factor"],
      rows: ({ x }, { factor }) => ({ y: mul(x, factor) }),
    });
    expect(nodes.map(({ op, wide }) => `${op}${wide ? " wide" : ""}`)).toEqual([
      ...["input", "widen wide", "scalar wide", "mul wide", "narrow"],
    ]);
    expect(outputs).toEqual([{ name: "y", kind: "matrix", node: 4 }]);
  });

  it("keeps weights that a sum and an output need", () => {
    expect([...keptWeights(softmaxRows).values()]).toEqual([0]);
    expect(keptWeights(logSoftmaxRows).size).toBe(0);
  });

  it("rejects functions of elements, columns of reduced numbers, and names that clash", () => {
    const inputs = { x: "matrix" } as const;
    expectCode("BAD_ARGUMENT", () => defineRows({ name: "a", inputs, rows: ({ x }) => ({ y: exp(x) }) }));
    expectCode("BAD_ARGUMENT", () => defineRows({ name: "a", inputs, rows: ({ x }) => ({ y: log(x) }) }));
    expectCode("BAD_ARGUMENT", () =>
      defineRows({ name: "a", inputs, rows: ({ x }) => ({ y: columns(mul(x, sum(x))) }) }),
    );
    expectCode("DUPLICATE", () => defineRows({ name: "a", inputs, rows: ({ x }) => ({ x: add(x, 1) }) }));
  });
});

/** One after the other: the programs of core, and one of what they lack. */
const PROGRAMS = [
  ...[softmaxRows, softmaxGradRows, logSoftmaxRows, logSoftmaxGradRows],
  ...[layerNormRows, layerNormGradRows, crossEntropyRows, crossEntropyGradRows],
  defineRows({
    name: "rest",
    inputs: { x: "matrix", n: "number", v: "vector" },
    scalars: ["s"],
    labels: true,
    rows: ({ x, n, v }, { s, count }) => ({
      y: { each: mul(add(x, v), n), atLabel: mul(atLabel(mul(x, v)), s) },
      most: largest(mul(x, n)),
      total: add(sum(mul(x, s)), count),
    }),
  }),
];

const wave = (length: number, seed: number) => Float32Array.from({ length }, (_, i) => 3 * Math.sin(seed + i * i));

it.each(PROGRAMS.map((program) => [program.name, program] as const))(
  "as text, %s gives the interpreter's words",
  (_, program) => {
    const [rows, length] = [6, 37];
    const sizes = { matrix: rows * length, vector: length, columns: length, number: rows };
    const inputs = program.inputs.map(({ kind }, slot) => wave(sizes[kind], slot));
    const labels = Int32Array.of(0, 36, -100, 5, 37, -1);
    const outputs = () => program.outputs.map(({ kind }) => new Float32Array(sizes[kind]));
    const [expected, found] = [outputs(), outputs()];
    const launch = { scalars: program.scalars.map(() => 0.3), rows, length, ignoreIndex: -100 };
    interpretRows(program, "f32", { inputs, labels, outputs: expected, ...launch });
    const js = openJsBackend();
    const slice = (array: Float32Array | Int32Array) => {
      const memory = js.allocate(array.byteLength);
      js.write(memory, 0, new Uint8Array(array.buffer as ArrayBuffer));
      return { memory, byteOffset: 0, length: array.length };
    };
    const slices = found.map(slice);
    const kernel = js.kernel({ kind: "rows", program, dtype: "f32" });
    js.launch({ kind: "rows", kernel, inputs: inputs.map(slice), labels: slice(labels), outputs: slices, ...launch });
    slices.forEach(({ memory }, slot) => {
      const words = new Float32Array(
        js.readSync!(memory, 0, memory.bytes).buffer as ArrayBuffer,
        0,
        found[slot]!.length,
      );
      expect(words).toAgreeWith(expected[slot]!);
    });
  },
);

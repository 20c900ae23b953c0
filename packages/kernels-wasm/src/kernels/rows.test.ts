import { interpretRows, type RowProgram, type Spec, type TypedArray } from "@opt/core/backend";
import { sample } from "@opt/testkit";
import { workspaceRowPrograms } from "@opt/testkit/row-programs";
import { describe, expect, it } from "vitest";
import { probeTarget } from "../target";
import { rows as source } from "./rows";
import { input, output, runKernel, seeded } from "./run-kernel";

/** Around vectors, blocks of lanes and chunks. */
const SHAPES = [
  [0, 5],
  [1, 1],
  [3, 2],
  [3, 5],
  [128, 10],
  [17, 33],
  [2, 1027],
  [20_003, 3],
  [3, 32_771],
] as const;

const programs = await workspaceRowPrograms();
const target = probeTarget(false);

/** Memory for a program: matrices of numbers around 0, scalars of 1/2, some labels that are no element and one to ignore. */
function launchOf(
  { inputs, outputs, scalars, labels }: RowProgram,
  dtype: "f32" | "f64",
  rows: number,
  length: number,
) {
  const sizes = { matrix: rows * length, vector: length, columns: length, number: rows };
  return {
    inputs: inputs.map(({ kind }, slot) => seeded(sizes[kind], slot, dtype).map((x) => 4 * x)),
    outputs: outputs.map(({ kind }) =>
      dtype === "f32" ? new Float32Array(sizes[kind]) : new Float64Array(sizes[kind]),
    ),
    ...(labels && { labels: Int32Array.from({ length: rows }, (_, row) => (row * 7) % (length + 1)) }),
    scalars: scalars.map(() => 0.5),
    ...{ rows, length, ignoreIndex: 1 },
  };
}

function results(program: RowProgram, dtype: "f32" | "f64", launch: ReturnType<typeof launchOf>, parts: number) {
  const spec: Spec<"rows"> = { kind: "rows", program, dtype };
  const { labels, ...rest } = launch;
  const placed = {
    ...rest,
    inputs: launch.inputs.map((values) => input(dtype, values)),
    outputs: launch.outputs.map(({ length }) => output(dtype, length)),
    ...(labels && { labels: input("i32", labels) }),
  };
  const found = runKernel(source, spec, placed as never, { target, parts });
  return launch.outputs.map((_, slot) => found[`outputs${slot}`]!);
}

describe.each(programs.map((program) => [program.name, program] as const))("rows of %s", (_, program) => {
  it.each(sample(SHAPES, 3))("of [%i, %i] are the interpreter's, on any number of threads", (rows, length) => {
    for (const dtype of ["f32", "f64"] as const) {
      const launch = launchOf(program, dtype, rows, length);
      interpretRows(program, dtype, launch as never);
      const words: TypedArray[] = results(program, dtype, launch, 1);
      const inParts = results(program, dtype, launch, 3);
      for (const [slot, result] of inParts.entries()) expect(result, `output ${slot}`).toAgreeWith(words[slot]!);
      if (dtype === "f64" || target.fused.f32) {
        const tolerance = dtype === "f32" ? "bits" : { absolute: 1e-12, relative: 1e-12 };
        for (const [slot, result] of words.entries()) {
          expect(result, `output ${slot}`).toAgreeWith(launch.outputs[slot]!, tolerance);
        }
      }
    }
  });
});

it("keeps -infinity as a mask and passes NaN to its row alone", () => {
  const softmax = programs.find(({ name }) => name === "softmax")!;
  const x = [0, -Infinity, 1, Number.NaN, 1e30, 1, 1000, 1000, 1000];
  const launch = { ...launchOf(softmax, "f32", 3, 3), inputs: [Float32Array.from(x)] };
  const [y] = results(softmax, "f32", launch as never, 1);
  expect(y).toAgreeWith([0.26894143, 0, 0.7310586, Number.NaN, Number.NaN, Number.NaN, 1 / 3, 1 / 3, 1 / 3], {
    ulp: 2,
  });
});

/** Layer normalisation of rows and its gradients. */
import type { Launch, Spec } from "@opt/core/backend";
import type { Execution, KernelSource, Target } from "../kernel";
import { LANES, type Shader } from "../shader/shader";
import { type RowShaders, rowShaders, rowsOf } from "./rows";

/** The variance is summed from the distances to the mean, not from squares. */
export const layerNorm: KernelSource<"layerNorm", RowShaders> = {
  prepare: (_spec: Spec<"layerNorm">, { subgroups }: Target) =>
    rowShaders(
      {
        name: "layer norm",
        slices: { input: "f32", weight: "f32", bias: "f32", output: "f32", mean: "f32", rstd: "f32" },
        params: { eps: "f32" },
        uses: { sum: true },
        body: (each) =>
          [
            "let count = f32(params.length);",
            "var own_sum = 0f;",
            each("own_sum += input(i);"),
            "let average = sum_of_lanes(own_sum, lane) / count;",
            "var own_squares = 0f;",
            each("let distance = input(i) - average;", "own_squares += distance * distance;"),
            "let inverse = 1f / sqrt(sum_of_lanes(own_squares, lane) / count + params.eps);",
            each("put_output(i, (input(i) - average) * inverse * weight(i - first) + bias(i - first));"),
            "put_mean(row, average);",
            "put_rstd(row, inverse);",
          ].join("\n"),
      },
      subgroups,
    ),

  launch(launch: Launch<"layerNorm">, shaders: RowShaders, execution: Execution) {
    const { input, weight, bias, output, mean, rstd, rows, length, eps } = launch;
    if (rows === 0) return;
    const [shader, groups] = rowsOf(shaders, rows, length);
    execution.dispatch(shader, [input, weight, bias, output, mean, rstd], { rows, length, eps }, groups);
  },
};

/** Rows that one invocation of the weights' gradient adds up. */
const ROWS = 64;

interface Gradients {
  readonly input: RowShaders;
  readonly columns: Shader;
  readonly total: Shader;
}

/** Sums over `ROWS` rows of a column: into partial sums, which `total` adds up. */
const COLUMNS: Shader = {
  name: "layer norm gradient of weight and bias",
  slices: {
    input: "f32",
    mean: "f32",
    rstd: "f32",
    gradient: "f32",
    weight_sums: "f32",
    bias_sums: "f32",
  },
  params: { rows: "u32", length: "u32", parts: "u32" },
  body: () =>
    [
      `let item = group * ${LANES}u + lane;`,
      "if (item >= params.parts * params.length) { return; }",
      "let column = item % params.length;",
      `let start = item / params.length * ${ROWS}u;`,
      "var weight_sum = 0f;",
      "var bias_sum = 0f;",
      `for (var row = start; row < min(start + ${ROWS}u, params.rows); row++) {`,
      "  let i = row * params.length + column;",
      "  weight_sum += gradient(i) * ((input(i) - mean(row)) * rstd(row));",
      "  bias_sum += gradient(i);",
      "}",
      "put_weight_sums(item, weight_sum);",
      "put_bias_sums(item, bias_sum);",
    ].join("\n"),
};

const TOTAL: Shader = {
  name: "layer norm gradient of weight and bias, total",
  slices: { weight_sums: "f32", bias_sums: "f32", weight_total: "f32", bias_total: "f32" },
  params: { length: "u32", parts: "u32" },
  body: () =>
    [
      `let column = group * ${LANES}u + lane;`,
      "if (column >= params.length) { return; }",
      "var weight_sum = 0f;",
      "var bias_sum = 0f;",
      "for (var part = 0u; part < params.parts; part++) {",
      "  weight_sum += weight_sums(part * params.length + column);",
      "  bias_sum += bias_sums(part * params.length + column);",
      "}",
      "put_weight_total(column, weight_sum);",
      "put_bias_total(column, bias_sum);",
    ].join("\n"),
};

/** With h = (x - mean) * rstd and d = g * weight: dx = rstd * (d - mean(d) - h * mean(d * h)), dweight = sum(g h), dbias = sum(g). */
export const layerNormGrad: KernelSource<"layerNormGrad", Gradients> = {
  prepare: (_spec: Spec<"layerNormGrad">, { subgroups }: Target) => ({
    columns: COLUMNS,
    total: TOTAL,
    input: rowShaders(
      {
        name: "layer norm gradient",
        slices: { input: "f32", weight: "f32", mean: "f32", rstd: "f32", gradient: "f32", output: "f32" },
        params: {},
        uses: { sum: true },
        body: (each) =>
          [
            "let average = mean(row);",
            "let inverse = rstd(row);",
            "let count = f32(params.length);",
            "var own_slope = 0f;",
            "var own_tilt = 0f;",
            each(
              "let slope = gradient(i) * weight(i - first);",
              "own_slope += slope;",
              "own_tilt += slope * ((input(i) - average) * inverse);",
            ),
            "let mean_slope = sum_of_lanes(own_slope, lane) / count;",
            "let mean_tilt = sum_of_lanes(own_tilt, lane) / count;",
            each(
              "let height = (input(i) - average) * inverse;",
              "put_output(i, inverse * (gradient(i) * weight(i - first) - mean_slope - height * mean_tilt));",
            ),
          ].join("\n"),
      },
      subgroups,
    ),
  }),

  launch(launch: Launch<"layerNormGrad">, { input: shaders, columns, total }: Gradients, execution: Execution) {
    const { input, weight, mean, rstd, gradient, inputGradient, weightGradient, biasGradient, rows, length } = launch;
    if (length === 0) return;
    if (rows > 0) {
      const [shader, groups] = rowsOf(shaders, rows, length);
      execution.dispatch(shader, [input, weight, mean, rstd, gradient, inputGradient], { rows, length }, groups);
    }
    const parts = Math.max(1, Math.ceil(rows / ROWS));
    const inOne = parts === 1;
    const weightSums = inOne ? weightGradient : execution.scratch(parts * length);
    const biasSums = inOne ? biasGradient : execution.scratch(parts * length);
    const groups = Math.ceil((parts * length) / LANES);
    execution.dispatch(columns, [input, mean, rstd, gradient, weightSums, biasSums], { rows, length, parts }, groups);
    if (inOne) return;
    const sums = [weightSums, biasSums, weightGradient, biasGradient];
    execution.dispatch(total, sums, { length, parts }, Math.ceil(length / LANES));
  },
};

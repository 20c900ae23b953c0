/** Cross-entropy of rows of logits and its gradient. */
import type { Launch, Spec } from "@opt/core/backend";
import { NON_FINITE } from "../emit/wgsl";
import type { Execution, KernelSource, Target } from "../kernel";
import { logSumExp, type RowShaders, rowShaders, rowsOf } from "./rows";

const OUT_OF_RANGE = "label < 0 || label >= i32(params.length)";

export const crossEntropy: KernelSource<"crossEntropy", RowShaders> = {
  prepare: (_spec: Spec<"crossEntropy">, { subgroups }: Target) =>
    rowShaders(
      {
        name: "cross-entropy",
        slices: { logits: "f32", labels: "i32", output: "f32" },
        params: { ignore: "i32" },
        uses: { sum: true, largest: true },
        declarations: NON_FINITE,
        body: (each) =>
          [
            logSumExp("logits(i)", each),
            "let label = labels(row);",
            "var loss = bitcast<f32>(nanBits);",
            "if (label == params.ignore) { loss = 0f; }",
            `else if (!(${OUT_OF_RANGE})) { loss = (largest - logits(first + u32(label))) + log_sum; }`,
            "put_output(row, loss);",
          ].join("\n"),
      },
      subgroups,
    ),

  launch(launch: Launch<"crossEntropy">, shaders: RowShaders, execution: Execution) {
    const { logits, labels, output, rows, classes: length, ignoreIndex: ignore } = launch;
    if (rows === 0) return;
    const [shader, groups] = rowsOf(shaders, rows, length);
    execution.dispatch(shader, [logits, labels, output], { rows, length, ignore }, groups);
  },
};

export const crossEntropyGrad: KernelSource<"crossEntropyGrad", RowShaders> = {
  prepare: (_spec: Spec<"crossEntropyGrad">, { subgroups }: Target) =>
    rowShaders(
      {
        name: "cross-entropy gradient",
        slices: { logits: "f32", labels: "i32", gradient: "f32", output: "f32" },
        params: { ignore: "i32" },
        uses: { sum: true, largest: true },
        declarations: NON_FINITE,
        body: (each) =>
          [
            logSumExp("logits(i)", each),
            "let label = labels(row);",
            "let slope = gradient(row);",
            each(
              "let hit = select(0f, 1f, i32(i - first) == label);",
              "var value = (exp(logits(i) - largest - log_sum) - hit) * slope;",
              `if (${OUT_OF_RANGE}) { value = bitcast<f32>(nanBits); }`,
              "if (label == params.ignore) { value = 0f; }",
              "put_output(i, value);",
            ),
          ].join("\n"),
      },
      subgroups,
    ),

  launch(launch: Launch<"crossEntropyGrad">, shaders: RowShaders, execution: Execution) {
    const { logits, labels, gradient, output, rows, classes: length, ignoreIndex: ignore } = launch;
    if (rows * length === 0) return;
    const [shader, groups] = rowsOf(shaders, rows, length);
    execution.dispatch(shader, [logits, labels, gradient, output], { rows, length, ignore }, groups);
  },
};

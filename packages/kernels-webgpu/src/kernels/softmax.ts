/** (Log-)softmax of rows and its gradient. */
import type { Launch, Spec } from "@opt/core/backend";
import type { Execution, KernelSource, Target } from "../kernel";
import { logSumExp, type RowShaders, rowShaders, rowsOf } from "./rows";

export const softmax: KernelSource<"softmax", RowShaders> = {
  prepare: ({ log }: Spec<"softmax">, { subgroups }: Target) =>
    rowShaders(
      {
        name: log ? "log softmax" : "softmax",
        slices: { input: "f32", output: "f32" },
        params: {},
        uses: { sum: true, largest: true },
        body(each) {
          const shifted = "input(i) - largest - log_sum";
          return [logSumExp("input(i)", each), each(`put_output(i, ${log ? shifted : `exp(${shifted})`});`)].join("\n");
        },
      },
      subgroups,
    ),

  launch({ input, output, rows, length }: Launch<"softmax">, shaders: RowShaders, execution: Execution) {
    if (rows * length === 0) return;
    const [shader, groups] = rowsOf(shaders, rows, length);
    execution.dispatch(shader, [input, output], { rows, length }, groups);
  },
};

/** From the output y: y (g - sum(g y)); for log-softmax g - exp(y) sum(g). */
export const softmaxGrad: KernelSource<"softmaxGrad", RowShaders> = {
  prepare: ({ log }: Spec<"softmaxGrad">, { subgroups }: Target) =>
    rowShaders(
      {
        name: log ? "log softmax gradient" : "softmax gradient",
        slices: { forward: "f32", gradient: "f32", output: "f32" },
        params: {},
        uses: { sum: true },
        body: (each) =>
          [
            "var own_sum = 0f;",
            each(`own_sum += ${log ? "gradient(i)" : "gradient(i) * forward(i)"};`),
            "let sum = sum_of_lanes(own_sum, lane);",
            each(
              log
                ? "put_output(i, gradient(i) - exp(forward(i)) * sum);"
                : "put_output(i, forward(i) * (gradient(i) - sum));",
            ),
          ].join("\n"),
      },
      subgroups,
    ),

  launch(
    { forward, gradient, output, rows, length }: Launch<"softmaxGrad">,
    shaders: RowShaders,
    execution: Execution,
  ) {
    if (rows * length === 0) return;
    const [shader, groups] = rowsOf(shaders, rows, length);
    execution.dispatch(shader, [forward, gradient, output], { rows, length }, groups);
  },
};

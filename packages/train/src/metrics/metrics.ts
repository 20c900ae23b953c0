/** The metrics that are shipped. */
import { checkOptions, concat, crossEntropyRows, full, oneHot, type Tensor, topk } from "@opt/core";
import { checkCounts } from "../check";
import { type Metric, sumMetric } from "./metric";

/**
 * Share of the samples whose class is among the `topK` largest outputs. Outputs [..., classes], targets class numbers [...].
 * Outputs [..., 1], or as many as targets, are logits of two classes.
 *
 * @throws OptError BAD_ARGUMENT unless topK is a whole number from 1 on
 * @example
 * await fit(model, { data, loss: crossEntropy, optimizer, epochs: 2, metrics: [accuracy(), accuracy({ topK: 5 })] });
 */
export function accuracy(options: { readonly topK?: number } = {}): Metric {
  checkOptions("accuracy", options, { topK: "number" });
  const { topK = 1 } = options;
  checkCounts("accuracy", { topK });
  return sumMetric({
    name: topK === 1 ? "accuracy" : `top${topK}`,
    size: 2,
    sums: (output, target) => {
      const labels = target.to("i32");
      if (output.size === labels.size)
        return counts(
          output
            .reshape([-1])
            .gt(0)
            .eq(labels.reshape([-1])),
        );
      const rows = output.reshape([-1, output.shape.at(-1)!]);
      const column = labels.reshape([-1]);
      if (topK === 1) return counts(rows.argmax(-1).eq(column));
      const { indices } = topk(rows, Math.min(topK, rows.shape[1]!));
      return counts(
        indices
          .eq(column.reshape([-1, 1]))
          .to("f32")
          .sum(1),
      );
    },
    value: ([right, count]) => right! / count!,
  });
}

/**
 * Mean of |output - target| over all elements.
 *
 * @example
 * const error = meanAbsoluteError();
 * error.update(tensor([1, 3]), tensor([2, 5]));
 * console.log(error.value()); // 1.5
 */
export function meanAbsoluteError(): Metric {
  return sumMetric({
    name: "mae",
    size: 2,
    sums: (output, target) => counts(output.sub(target.reshape(output.shape)).abs()),
    value: ([sum, count]) => sum! / count!,
  });
}

/**
 * F1 score: 2 true positives / (2 true positives + false positives + false negatives), the mean over the classes (macro), as
 * scikit-learn's `f1_score(average="macro")`. A class that never occurs counts as 0. With two classes, outputs may be one logit each.
 *
 * @throws OptError BAD_ARGUMENT unless classes is a whole number from 2 on
 * @example
 * console.log(await evaluate(model, { data, metrics: [f1({ classes: 3 })] })); // { f1 }
 */
export function f1(options: { readonly classes: number }): Metric {
  checkOptions("f1", options, { classes: "number" });
  const { classes } = options;
  checkCounts("f1", { classes }, 2);
  return sumMetric({
    name: "f1",
    size: 3 * classes,
    sums: (output, target) => {
      const labels = target.to("i32").reshape([-1]);
      const isLogit = output.size === labels.size;
      const guessed = isLogit
        ? output.reshape([-1]).gt(0).to("i32")
        : output.reshape([-1, output.shape.at(-1)!]).argmax(-1);
      const [one, other] = [guessed, labels].map((numbers) => oneHot(numbers, classes).to("f32"));
      return concat([one!.mul(other!).sum(0), one!.sum(0), other!.sum(0)]);
    },
    value: (sums) => {
      const scores = Array.from({ length: classes }, (_, c) => {
        const [both, guessed, there] = [sums[c]!, sums[classes + c]!, sums[2 * classes + c]!];
        return guessed + there === 0 ? 0 : (2 * both) / (guessed + there);
      });
      return scores.reduce((sum, score) => sum + score, 0) / classes;
    },
  });
}

/**
 * e to the mean cross-entropy of each token. Outputs are logits [..., classes], targets class numbers [...].
 *
 * @example
 * console.log(await evaluate(model, { data, metrics: [perplexity()] })); // { perplexity }
 */
export function perplexity(): Metric {
  return sumMetric({
    name: "perplexity",
    size: 2,
    sums: (output, target) => {
      const rows = output.reshape([-1, output.shape.at(-1)!]).to("f32");
      return counts(crossEntropyRows(rows, target.to("i32").reshape([-1])));
    },
    value: ([sum, count]) => Math.exp(sum! / count!),
  });
}

/** Their sum, and how many there are. */
function counts(values: Tensor): Tensor {
  return concat([values.to("f32").sum().reshape([1]), full([1], values.size, { device: values.device })]);
}

/** The metrics that are shipped. */
import { check, checkOptions, concat, crossEntropyRows, full, oneHot, type Tensor, topk, where } from "@opt/core";
import { checkCounts } from "../check";
import { type Metric, sumMetric } from "./metric";

/**
 * Share of the samples whose class is among the `topK` largest outputs. Outputs [..., classes], targets class numbers [...].
 * Outputs [..., 1], or as many as targets, are logits of two classes. Targets of -100 are not counted.
 *
 * @throws OptError BAD_ARGUMENT unless topK is a whole number from 1 on, and for one-hot targets
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
      const { labels, isCounted, isLogit } = labelsOf("accuracy", output, target);
      if (isLogit || topK === 1) return counts(guesses(output, isLogit).eq(labels), isCounted);
      const rows = output.reshape([-1, output.shape.at(-1)!]);
      const { indices } = topk(rows, Math.min(topK, rows.shape[1]!));
      return counts(indices.eq(labels.reshape([-1, 1])), isCounted);
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
 * Targets of -100 are not counted.
 *
 * @throws OptError BAD_ARGUMENT unless classes is a whole number from 2 on, and for one-hot targets
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
      const { labels, isCounted, isLogit } = labelsOf("f1", output, target);
      const weights = isCounted.to("f32").reshape([-1, 1]);
      const numbers = [guesses(output, isLogit).to("i32"), where(isCounted, labels, 0)];
      const [one, other] = numbers.map((each) => oneHot(each, classes).to("f32").mul(weights));
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
 * Targets of -100 are not counted.
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
      const { labels, isCounted } = labelsOf("perplexity", output, target);
      return counts(crossEntropyRows(rows, labels), isCounted); // 0 for those that are not counted
    },
    value: ([sum, count]) => Math.exp(sum! / count!),
  });
}

/** The label that losses leave out. */
const IGNORED = -100;

/** Class numbers [rows], which of them count, and whether outputs are one logit each. @throws OptError BAD_ARGUMENT */
function labelsOf(name: string, output: Tensor, target: Tensor) {
  const isLogit = output.size === target.size;
  const isWide = isLogit && output.shape.length > 1 && output.shape.at(-1)! > 1;
  check(
    !isWide || ["i32", "u8", "bool"].includes(target.dtype),
    "BAD_ARGUMENT",
    name,
    () => `targets must be class numbers, got ${target.dtype} of the outputs' shape [${target.shape}].`,
    'Return target.argmax(-1) from forward for one-hot targets, target.to("i32") where each output is a logit.',
  );
  const labels = target.to("i32").reshape([-1]);
  return { labels, isCounted: labels.ne(IGNORED), isLogit };
}

/** Class numbers [rows] of the largest outputs, or of the sign of each. */
const guesses = (output: Tensor, isLogit: boolean): Tensor =>
  isLogit ? output.reshape([-1]).gt(0) : output.reshape([-1, output.shape.at(-1)!]).argmax(-1);

/** Their sum, and how many are counted. */
function counts(values: Tensor, isCounted?: Tensor): Tensor {
  const count = isCounted ? isCounted.to("f32").sum().reshape([1]) : full([1], values.size, { device: values.device });
  return concat([values.to("f32").sum().reshape([1]), count]);
}

/** Samples of categories that have gradients. */
import {
  check,
  checkGenerator,
  checkOptions,
  checkTensor,
  clamp,
  defaultGenerator,
  type Generator,
  log1p,
  noGrad,
  oneHot,
  rand,
  show,
  type Tensor,
  tidy,
} from "@opt/core";
import { floatOf } from "../floats";

export interface GumbelSoftmaxOptions {
  /** The temperature: near 0 the samples are nearly one-hot. Default 1. */
  readonly tau?: number;
  /** The samples are one-hot, with the gradients of the soft ones. Default false. */
  readonly hard?: boolean;
  /** Where the categories are. Default -1, the last axis. */
  readonly axis?: number;
  /** By default the generator that `manualSeed` seeds. */
  readonly generator?: Generator;
}

const OPTIONS = { tau: "number", hard: "boolean", axis: "number", generator: "object" } as const;

/** Waiting times above 0, whose logarithms are finite. */
const LEAST = 2 ** -25;

/**
 * softmax((logits + g) / tau), g being drawn from the Gumbel distribution: a sample of categories by their unnormalised log-probabilities
 * (Jang et al. 2017, Maddison et al. 2017).
 *
 * @throws OptError BAD_ARGUMENT for a tau that is not above 0, and for an axis that is not there
 * @example
 * const sample = gumbelSoftmax(tensor([[1, 2, 3]]), { hard: true, generator: new Generator(1) }); // one 1, else 0
 */
export function gumbelSoftmax(logits: Tensor, options: GumbelSoftmaxOptions = {}): Tensor {
  const where = "gumbelSoftmax";
  checkTensor(where, logits, "logits");
  checkOptions(where, options, OPTIONS);
  const { tau = 1, hard = false, axis = -1, generator = defaultGenerator } = options;
  check(tau > 0, "BAD_ARGUMENT", where, () => `tau must be > 0, got ${show(tau)}.`, "Use 1.");
  checkGenerator(where, generator);
  const rank = logits.shape.length;
  const isAxis = Number.isInteger(axis) && axis >= -rank && axis < rank;
  check(isAxis, "BAD_ARGUMENT", where, () => `axis must be one of [${logits.shape}], got ${show(axis)}.`, "Use -1.");
  return tidy(() => {
    const gumbels = noGrad(() => {
      const draws = rand(logits.shape, { device: logits.device, generator });
      return clamp(log1p(draws.neg()).neg(), LEAST).log().neg().to(floatOf(logits.dtype));
    });
    const soft = logits.add(gumbels).div(tau).softmax(axis);
    if (!hard) return soft;
    const at = axis < 0 ? axis + rank : axis;
    const chosen = oneHot(soft.detach().argmax(at), logits.shape[at]!);
    const order = [...logits.shape.keys()].map((i) => (i < at ? i : i === at ? rank - 1 : i - 1));
    return chosen.permute(order).to(soft.dtype).sub(soft.detach()).add(soft);
  });
}

import { check, checkTensor, concat, full, type Tensor, tidy } from "@opt/core";
import { crossEntropy } from "@opt/nn";

/** The label of what is no target. */
export const IGNORED = -100;

/**
 * Cross-entropy of each next token, as transformers computes it: logits [batch, length, tokens] at place i are for label i + 1. Labels
 * [batch, length] are i32; -100 counts neither in the sum nor in the count. For `fit`, whose steps divide by the count of all tokens.
 *
 * @throws OptError BAD_SHAPE, BAD_DTYPE
 * @example
 * const logits = randn([1, 3, 5]);
 * const { sum, count } = causalLoss(logits, tensor([[-100, 4, 2]], { dtype: "i32" })); // of 4 at place 0 and 2 at place 1
 * const loss = sum.div(count);
 */
export function causalLoss(logits: Tensor, labels: Tensor): { readonly sum: Tensor; readonly count: Tensor } {
  const where = "causalLoss";
  checkTensor(where, logits, "logits");
  checkTensor(where, labels, "labels");
  const [batch, length] = labels.shape;
  const isFit = labels.shape.length === 2 && String(logits.shape.slice(0, -1)) === String(labels.shape);
  const problem = () =>
    `logits must be [batch, length, tokens] and labels [batch, length], got [${logits.shape}] and [${labels.shape}].`;
  check(isFit, "BAD_SHAPE", where, problem, "Labels are the input's tokens, unshifted.");
  // Not a slice of logits: that would copy most of them.
  const [next, count] = tidy(() => {
    const end = full([batch!, 1], IGNORED, { dtype: "i32", device: labels.device });
    const next = concat([labels.slice(1, length!, 1), end], 1);
    return [next, next.ne(IGNORED).to("f32").sum()] as const;
  });
  const sum = crossEntropy(logits, next, { reduction: "sum" });
  next.dispose();
  return { sum, count };
}

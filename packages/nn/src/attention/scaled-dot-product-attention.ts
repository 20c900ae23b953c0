/** Attention: one kernel where the device has it, or else matrix products and a softmax. */
import {
  arange,
  autocast,
  check,
  checkOptions,
  checkTensor,
  fusedAttention,
  type Generator,
  lowered,
  maskedFill,
  needing,
  type Tensor,
  tidy,
  where,
} from "@opt/core";
import { checkShare, Dropout } from "../layers/dropout/dropout";

export interface AttentionOptions {
  /** Broadcasts to [..., queries, keys]: bool, true where a query sees a key; or floats, which are added to the scores. */
  readonly attnMask?: Tensor;
  /** Each query sees the keys up to its own place alone. Default false. */
  readonly isCausal?: boolean;
  /** The share of weights that are dropped: in evaluation pass 0. Default 0. */
  readonly dropoutP?: number;
  /** Factor of the scores. Default 1 / sqrt(width of the queries). */
  readonly scale?: number;
  /** Draws what is dropped; by default the generator that `manualSeed` seeds. */
  readonly generator?: Generator;
}

const OPTIONS = {
  attnMask: "any",
  isCausal: "boolean",
  dropoutP: "number",
  scale: "number",
  generator: "object",
} as const;

/**
 * softmax(query key^T / sqrt(width)) value (Vaswani et al. 2017). query [..., queries, width], key [..., keys, width],
 * value [..., keys, columns], result [..., queries, columns]. A query that sees no key gives zeros. 16-bit scores are computed in f32.
 *
 * @throws OptError BAD_SHAPE, BAD_ARGUMENT, DEVICE_MISMATCH; BAD_DTYPE for a mask of integers
 * @example
 * const [query, key, value] = [rand([2, 4, 6, 8]), rand([2, 4, 6, 8]), rand([2, 4, 6, 8])];
 * const seen = scaledDotProductAttention(query, key, value, { isCausal: true }); // [2, 4, 6, 8]
 */
export function scaledDotProductAttention(
  query: Tensor,
  key: Tensor,
  value: Tensor,
  options: AttentionOptions = {},
): Tensor {
  const where = "scaledDotProductAttention";
  checkOptions(where, options, OPTIONS);
  const { attnMask, isCausal = false, dropoutP = 0 } = options;
  for (const [name, tensor] of Object.entries({ query, key, value })) {
    checkTensor(where, tensor, name);
    const isMatrix = tensor.shape.length >= 2;
    check(isMatrix, "BAD_SHAPE", where, () => `${name} must be [..., places, width], got [${tensor.shape}].`);
  }
  const isFit = key.shape.at(-1) === query.shape.at(-1) && value.shape.at(-2) === key.shape.at(-2);
  const shapes = () => `query [${query.shape}], key [${key.shape}] and value [${value.shape}]`;
  const rule = "query and key must have one width, key and value as many places";
  check(isFit, "BAD_SHAPE", where, () => `${rule}, got ${shapes()}.`, "Heads come before places: see transpose(1, 2).");
  if (attnMask !== undefined) checkMask(where, "attnMask", attnMask);
  const isOne = attnMask === undefined || !isCausal;
  check(isOne, "BAD_ARGUMENT", where, () => "takes attnMask or isCausal, got both.", "Join them in one mask.");
  checkShare(where, "dropoutP", dropoutP);
  return tidy(() => {
    const given = [query, key, value].map(lowered);
    const { dtype } = given[0]!;
    const isHalf = dtype === "f16" || dtype === "bf16";
    const [q, k, v] = isHalf ? given.map((x) => x.to("f32")) : given;
    const isPlain = attnMask === undefined && dropoutP === 0;
    const fused = isPlain ? fusedAttention(q!, k!, v!, { scale: scaleOf(q!, options), isCausal }) : null;
    const result = fused ?? autocast(null, () => byOps(q!, k!, v!, options, isPlain));
    return isHalf ? result.to(dtype) : result;
  });
}

/** Throws for an integer mask: it could be added, or say what is seen. @throws OptError BAD_ARGUMENT, BAD_DTYPE */
export function checkMask(where: string, name: string, mask: Tensor): void {
  checkTensor(where, mask, name);
  const isInteger = mask.dtype === "i32" || mask.dtype === "u8";
  check(
    !isInteger,
    "BAD_DTYPE",
    where,
    () => `${name} must be bool, or floats that are added to the scores, got ${mask.dtype}.`,
    `Use ${name}.to("bool"), or ${name}.to("f32") to add it.`,
  );
}

function byOps(q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions, isPlain: boolean): Tensor {
  const result = attentionWeights(q, k, options).matmul(v);
  return isPlain ? needing("attention", result, [q, k, v, result]) : result;
}

/** `[..., queries, keys]`: how much each query takes of each key's value. */
export function attentionWeights(query: Tensor, key: Tensor, options: AttentionOptions): Tensor {
  const { attnMask, isCausal = false, dropoutP = 0, generator } = options;
  const scores = query.mul(scaleOf(query, options)).matmul(key, { transposeB: true });
  const weights = softmaxOf(isCausal ? causal(scores) : scores, attnMask);
  return dropoutP === 0 ? weights : new Dropout(dropoutP, { generator }).forward(weights);
}

const scaleOf = (query: Tensor, { scale = 1 / Math.sqrt(query.shape.at(-1)!) }: AttentionOptions) => scale;

function causal(scores: Tensor): Tensor {
  const [queries, keys] = scores.shape.slice(-2) as [number, number];
  const { device } = scores;
  return where(arange(keys, { device }).le(arange(queries, { device }).unsqueeze(1)), scores, Number.NEGATIVE_INFINITY);
}

/** Rows that see nothing are zeros, and have no gradient. */
function softmaxOf(scores: Tensor, mask: Tensor | undefined): Tensor {
  if (mask === undefined) return scores.softmax(-1);
  const seen = mask.dtype === "bool" ? where(mask, scores, Number.NEGATIVE_INFINITY) : scores.add(mask);
  const isBlind = seen.detach().max(-1, true).eq(Number.NEGATIVE_INFINITY);
  return maskedFill(maskedFill(seen, isBlind, 0).softmax(-1), isBlind, 0);
}

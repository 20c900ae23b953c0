/** Every loss as a class, as `torch.nn` has them. Each takes the options of its function, and throws OptError BAD_ARGUMENT for wrong ones. */
import { bceWithLogits, settledBceWithLogits } from "./bce-with-logits";
import { binaryCrossEntropy, settledBinaryCrossEntropy } from "./binary-cross-entropy";
import { crossEntropy, settledCrossEntropy } from "./cross-entropy";
import { ctcLoss, settledCtc } from "./ctc-loss";
import { huberLoss, l1Loss, settledHuber, settledL1, settledSmoothL1, smoothL1Loss } from "./distance";
import {
  cosineEmbeddingLoss,
  settledCosineEmbedding,
  settledTripletMargin,
  tripletMarginLoss,
} from "./embedding-losses";
import { klDiv, settledKlDiv } from "./kl-div";
import { gaussianNllLoss, poissonNllLoss, settledGaussianNll, settledPoissonNll } from "./likelihood";
import { lossClass } from "./loss-class";
import {
  hingeEmbeddingLoss,
  marginRankingLoss,
  multiMarginLoss,
  settledHingeEmbedding,
  settledMarginRanking,
  settledMultiMargin,
  settledSoftMargin,
  softMarginLoss,
} from "./margin-losses";
import { mseLoss, settledMse } from "./mse-loss";
import {
  multiLabelMarginLoss,
  multiLabelSoftMarginLoss,
  settledMultiLabelMargin,
  settledMultiLabelSoftMargin,
} from "./multi-label-losses";
import { nllLoss, settledNll } from "./nll-loss";

/** Absolute error as a module: `l1Loss`. */
export class L1Loss extends /* @__PURE__ */ lossClass(l1Loss, settledL1) {}

/** Squared error as a module: `mseLoss`. */
export class MSELoss extends /* @__PURE__ */ lossClass(mseLoss, settledMse) {}

/** Huber's loss as a module: `huberLoss`. */
export class HuberLoss extends /* @__PURE__ */ lossClass(huberLoss, settledHuber) {}

/** Huber's loss divided by beta as a module: `smoothL1Loss`. */
export class SmoothL1Loss extends /* @__PURE__ */ lossClass(smoothL1Loss, settledSmoothL1) {}

/** Cross-entropy of logits as a module: `crossEntropy`. The classes are on the last axis, unless `axis` says otherwise. */
export class CrossEntropyLoss extends /* @__PURE__ */ lossClass(crossEntropy, settledCrossEntropy) {}

/** Negative log-likelihood as a module: `nllLoss`. The classes are on the last axis, unless `axis` says otherwise. */
export class NLLLoss extends /* @__PURE__ */ lossClass(nllLoss, settledNll) {}

/** Kullback-Leibler divergence as a module: `klDiv`. */
export class KLDivLoss extends /* @__PURE__ */ lossClass(klDiv, settledKlDiv) {}

/** Binary cross-entropy of probabilities as a module: `binaryCrossEntropy`. */
export class BCELoss extends /* @__PURE__ */ lossClass(binaryCrossEntropy, settledBinaryCrossEntropy) {}

/** Binary cross-entropy of logits as a module: `bceWithLogits`. */
export class BCEWithLogitsLoss extends /* @__PURE__ */ lossClass(bceWithLogits, settledBceWithLogits) {}

/** Connectionist temporal classification as a module: `ctcLoss`. */
export class CTCLoss extends /* @__PURE__ */ lossClass(ctcLoss, settledCtc) {}

/** Negative log-likelihood under normal distributions as a module: `gaussianNllLoss`. */
export class GaussianNLLLoss extends /* @__PURE__ */ lossClass(gaussianNllLoss, settledGaussianNll) {}

/** Negative log-likelihood under Poisson distributions as a module: `poissonNllLoss`. */
export class PoissonNLLLoss extends /* @__PURE__ */ lossClass(poissonNllLoss, settledPoissonNll) {}

/** Loss of an order as a module: `marginRankingLoss`. */
export class MarginRankingLoss extends /* @__PURE__ */ lossClass(marginRankingLoss, settledMarginRanking) {}

/** Hinge loss of classes as a module: `multiMarginLoss`. */
export class MultiMarginLoss extends /* @__PURE__ */ lossClass(multiMarginLoss, settledMultiMargin) {}

/** Hinge loss of distances as a module: `hingeEmbeddingLoss`. */
export class HingeEmbeddingLoss extends /* @__PURE__ */ lossClass(hingeEmbeddingLoss, settledHingeEmbedding) {}

/** Logistic loss of signs as a module: `softMarginLoss`. */
export class SoftMarginLoss extends /* @__PURE__ */ lossClass(softMarginLoss, settledSoftMargin) {}

/** Hinge loss of several labels as a module: `multiLabelMarginLoss`. */
export class MultiLabelMarginLoss extends /* @__PURE__ */ lossClass(multiLabelMarginLoss, settledMultiLabelMargin) {}

/** Binary cross-entropy of several labels as a module: `multiLabelSoftMarginLoss`. */
export class MultiLabelSoftMarginLoss extends /* @__PURE__ */ lossClass(
  multiLabelSoftMarginLoss,
  settledMultiLabelSoftMargin,
) {}

/** Loss of triplets as a module: `tripletMarginLoss`. */
export class TripletMarginLoss extends /* @__PURE__ */ lossClass(tripletMarginLoss, settledTripletMargin) {}

/** Loss of angles as a module: `cosineEmbeddingLoss`. */
export class CosineEmbeddingLoss extends /* @__PURE__ */ lossClass(cosineEmbeddingLoss, settledCosineEmbedding) {}

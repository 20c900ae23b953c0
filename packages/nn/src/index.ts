/** `@opt/nn`: modules, layers, losses and initialisers over the ops of `@opt/core`. */

export {
  MultiheadAttention,
  type MultiheadAttentionCall,
  type MultiheadAttentionOptions,
} from "./attention/multihead-attention";
export { type AttentionOptions, scaledDotProductAttention } from "./attention/scaled-dot-product-attention";
export type { Fan } from "./initializers/fan";
export { gainOf, type Nonlinearity } from "./initializers/gain";
export {
  constant,
  type InitializerOptions,
  type KaimingOptions,
  kaimingNormal,
  kaimingUniform,
  normal,
  ones,
  type TruncNormalOptions,
  truncNormal,
  uniform,
  type XavierOptions,
  xavierNormal,
  xavierUniform,
  zeros,
} from "./initializers/initializers";
export {
  type DiracOptions,
  dirac,
  eye,
  type OrthogonalOptions,
  orthogonal,
  type SparseOptions,
  sparse,
} from "./initializers/structured";
export {
  GELU,
  LeakyReLU,
  ReLU,
  Sigmoid,
  SiLU,
  Softplus,
  type SoftplusOptions,
  Tanh,
} from "./layers/activation/activations";
export { ELU, Hardswish, Hardtanh, LogSigmoid, Mish, ReLU6, SELU } from "./layers/activation/further-activations";
export { type GumbelSoftmaxOptions, gumbelSoftmax } from "./layers/activation/gumbel-softmax";
export { PReLU, type PReLUOptions } from "./layers/activation/prelu";
export { GLU, LogSoftmax, Softmax } from "./layers/activation/softmax";
export { Bilinear, bilinear } from "./layers/bilinear";
export { ModuleDict, ModuleList } from "./layers/container/module-list";
export { type Layer, Sequential } from "./layers/container/sequential";
export type { PaddingMode } from "./layers/conv/border";
export { ConvTranspose1d, type ConvTranspose1dOptions } from "./layers/conv/conv-transpose1d";
export { ConvTranspose2d, type ConvTranspose2dOptions } from "./layers/conv/conv-transpose2d";
export { ConvTranspose3d, type ConvTranspose3dOptions } from "./layers/conv/conv-transpose3d";
export { Conv1d, type Conv1dOptions } from "./layers/conv/conv1d";
export { Conv2d, type Conv2dOptions } from "./layers/conv/conv2d";
export { Conv3d, type Conv3dOptions } from "./layers/conv/conv3d";
export type { ConvolutionLayerOptions, Extents, TransposedLayerOptions } from "./layers/conv/convolution";
export {
  Dropout,
  Dropout1d,
  Dropout2d,
  Dropout3d,
  type DropoutCall,
  type DropoutOptions,
  dropout,
} from "./layers/dropout/dropout";
export { Embedding, type EmbeddingOptions } from "./layers/embedding/embedding";
export { EmbeddingBag, type EmbeddingBagCall, type EmbeddingBagOptions } from "./layers/embedding/embedding-bag";
export { Flatten, Identity } from "./layers/flatten";
export type { LayerOptions } from "./layers/layer-options";
export { Linear, type LinearOptions, linear } from "./layers/linear";
export {
  BatchNorm,
  BatchNorm1d,
  BatchNorm2d,
  BatchNorm3d,
  type BatchNormOptions,
  isBatchNorm,
  type WiderStatistics,
} from "./layers/norm/batch-norm";
export { GroupNorm, type GroupNormOptions } from "./layers/norm/group-norm";
export { InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, type InstanceNormOptions } from "./layers/norm/instance-norm";
export { LayerNorm, type LayerNormOptions } from "./layers/norm/layer-norm";
export { RMSNorm, type RMSNormOptions } from "./layers/norm/rms-norm";
export { updateBatchNorm } from "./layers/norm/update-batch-norm";
export {
  AdaptiveAvgPool1d,
  AdaptiveAvgPool2d,
  AdaptiveAvgPool3d,
  AdaptiveMaxPool1d,
  AdaptiveMaxPool2d,
  AdaptiveMaxPool3d,
} from "./layers/pool/adaptive-pool";
export { AvgPool2d } from "./layers/pool/average-pool2d";
export { MaxPool2d } from "./layers/pool/max-pool2d";
export { AvgPool1d, MaxPool1d } from "./layers/pool/pool1d";
export { AvgPool3d, MaxPool3d } from "./layers/pool/pool3d";
export { Fold, Unfold } from "./layers/resize/fold";
export { type AffineGridOptions, affineGrid, type GridSampleOptions, gridSample } from "./layers/resize/grid-sample";
export { type InterpolateOptions, type InterpolationMode, interpolate } from "./layers/resize/interpolate";
export { PixelShuffle, PixelUnshuffle, Unflatten, Upsample } from "./layers/resize/upsample";
export { CosineSimilarity, PairwiseDistance } from "./layers/similarity";
export { type BceWithLogitsOptions, bceWithLogits } from "./losses/bce-with-logits";
export { type BinaryCrossEntropyOptions, binaryCrossEntropy } from "./losses/binary-cross-entropy";
export { type CrossEntropyOptions, crossEntropy } from "./losses/cross-entropy";
export { type CtcLossOptions, ctcLoss, type Lengths } from "./losses/ctc-loss";
export {
  type HuberLossOptions,
  huberLoss,
  type L1LossOptions,
  l1Loss,
  type SmoothL1LossOptions,
  smoothL1Loss,
} from "./losses/distance";
export {
  type CosineEmbeddingLossOptions,
  cosineEmbeddingLoss,
  type TripletMarginLossOptions,
  tripletMarginLoss,
} from "./losses/embedding-losses";
export { type KlDivOptions, klDiv } from "./losses/kl-div";
export type { Labels } from "./losses/labels";
export {
  type GaussianNllLossOptions,
  gaussianNllLoss,
  type PoissonNllLossOptions,
  poissonNllLoss,
} from "./losses/likelihood";
export type { LossModule } from "./losses/loss-class";
export * from "./losses/loss-classes";
export {
  type HingeEmbeddingLossOptions,
  hingeEmbeddingLoss,
  type MarginRankingLossOptions,
  type MultiMarginLossOptions,
  marginRankingLoss,
  multiMarginLoss,
  type SoftMarginLossOptions,
  softMarginLoss,
} from "./losses/margin-losses";
export { type MseLossOptions, mseLoss } from "./losses/mse-loss";
export {
  type MultiLabelMarginLossOptions,
  type MultiLabelSoftMarginLossOptions,
  multiLabelMarginLoss,
  multiLabelSoftMarginLoss,
} from "./losses/multi-label-losses";
export { type NllLossOptions, nllLoss } from "./losses/nll-loss";
export type { Reduction } from "./losses/reduction";
export { buffer } from "./module/buffer";
export { functionalCall } from "./module/functional-call";
export type { Misfit, StateDict } from "./module/load-state";
export { type ForwardHook, Module, type ParametersOptions } from "./module/module";
export { removeParametrization } from "./parametrizations/parametrize";
export { type SpectralNormOptions, spectralNorm } from "./parametrizations/spectral-norm";
export { type WeightNormOptions, weightNorm } from "./parametrizations/weight-norm";
export type { RnnNonlinearity } from "./recurrent/cell";
export { GRUCell, LSTMCell, RNNCell, type RnnCellOptions } from "./recurrent/cells";
export { GRU } from "./recurrent/gru";
export type { RecurrentCall } from "./recurrent/lengths";
export { LSTM, type LstmLayerOptions } from "./recurrent/lstm";
export type { RecurrentOptions } from "./recurrent/recurrent";
export type { RecurrentCellOptions } from "./recurrent/recurrent-cell";
export { RNN, type RnnOptions } from "./recurrent/rnn";
export {
  type CosineSimilarityOptions,
  cosineSimilarity,
  type NormalizeOptions,
  normalize,
  type PairwiseDistanceOptions,
  pairwiseDistance,
} from "./similarity/similarity";
export { type TransformerDecoderCall, TransformerDecoderLayer } from "./transformer/decoder-layer";
export { TransformerEncoderLayer, type TransformerEncoderLayerCall } from "./transformer/encoder-layer";
export type { TransformerLayerOptions } from "./transformer/layer";
export {
  TransformerDecoder,
  TransformerEncoder,
  type TransformerEncoderCall,
  type TransformerStackOptions,
} from "./transformer/stacks";
export { Transformer, type TransformerCall, type TransformerOptions } from "./transformer/transformer";

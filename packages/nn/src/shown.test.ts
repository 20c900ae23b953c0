// What each layer prints: the arguments that make it again, and options that are not the default.
import { expect, it } from "vitest";
import * as nn from "./index";

it.each<[nn.Module, string]>([
  [new nn.Linear(3, 2, { bias: false }), "inFeatures=3, outFeatures=2, bias=false"],
  [
    new nn.Conv1d(2, 4, 3, { stride: 2, padding: 1, dilation: 2, groups: 2 }),
    "2, 4, kernelSize=3, stride=2, padding=1, dilation=2, groups=2, bias=true",
  ],
  [
    new nn.Conv2d(2, 4, [3, 2], { padding: "same", paddingMode: "circular", bias: false }),
    "2, 4, kernelSize=3x2, padding=same, paddingMode=circular, bias=false",
  ],
  [new nn.Conv3d(1, 2, 2), "1, 2, kernelSize=2x2x2, bias=true"],
  [
    new nn.ConvTranspose1d(2, 4, 3, { outputPadding: 1, stride: 2 }),
    "2, 4, kernelSize=3, stride=2, outputPadding=1, bias=true",
  ],
  [
    new nn.ConvTranspose2d(2, 4, 3, { padding: [1, 0], dilation: 2 }),
    "2, 4, kernelSize=3x3, padding=1x0, dilation=2, bias=true",
  ],
  [new nn.MaxPool1d(2, { stride: 1, ceilMode: true }), "kernelSize=2, stride=1, ceilMode=true"],
  [
    new nn.MaxPool2d([2, 3], { stride: 1, padding: 1, dilation: 2, ceilMode: true }),
    "kernelSize=2x3, stride=1, padding=1, dilation=2, ceilMode=true",
  ],
  [new nn.AvgPool1d(2, { countIncludePad: false }), "kernelSize=2, countIncludePad=false"],
  [
    new nn.AvgPool2d([3, 2], { countIncludePad: false, padding: [1, 0] }),
    "kernelSize=3x2, padding=1x0, countIncludePad=false",
  ],
  [new nn.AvgPool2d(2), "kernelSize=2"],
  [new nn.AdaptiveAvgPool1d(3), "outputSize=3"],
  [new nn.AdaptiveAvgPool2d([3, null]), "outputSize=3xnull"],
  [
    new nn.Upsample({ size: [3, 3], mode: "bilinear", alignCorners: true }),
    "size=3x3, mode=bilinear, alignCorners=true",
  ],
  [new nn.PixelShuffle(2), "upscaleFactor=2"],
  [new nn.Flatten(), ""],
  [new nn.Unflatten(1, [3, -1]), "axis=1, sizes=[3,-1]"],
  [new nn.Embedding(3, 2, { paddingIdx: 1 }), "3, 2, paddingIdx=1"],
  [new nn.EmbeddingBag(3, 2, { mode: "max" }), "3, 2, mode=max"],
  [
    new nn.BatchNorm1d(3, { momentum: null, eps: 0.1 }),
    "3, eps=0.1, momentum=null, affine=true, trackRunningStats=true",
  ],
  [
    new nn.BatchNorm2d(3, { affine: false, trackRunningStats: false }),
    "3, eps=0.00001, momentum=0.1, affine=false, trackRunningStats=false",
  ],
  [new nn.InstanceNorm1d(3), "3, eps=0.00001, momentum=0.1, affine=false, trackRunningStats=false"],
  [new nn.GroupNorm(2, 4, { affine: false }), "2, 4, eps=0.00001, affine=false"],
  [new nn.RMSNorm([2, 3], { elementwiseAffine: false }), "[2, 3], eps=null, elementwiseAffine=false"],
  [new nn.Dropout(0.3), "p=0.3"],
  [new nn.Dropout2d(), "p=0.5"],
  [new nn.PReLU(3), "numParameters=3"],
  [new nn.GELU({ approximate: "tanh" }), "approximate=tanh"],
  [new nn.LeakyReLU(0.2), "negativeSlope=0.2"],
  [new nn.Softplus({ beta: 2, threshold: 10 }), "beta=2, threshold=10"],
  [new nn.ELU(0.5), "alpha=0.5"],
  [new nn.Hardtanh(-2, 3), "minVal=-2, maxVal=3"],
  [new nn.Softmax(1), "axis=1"],
  [new nn.LogSoftmax(-1), "axis=-1"],
  [new nn.RNN(3, 2, { numLayers: 2 }), "3, 2, numLayers=2, bidirectional=false"],
  [new nn.LSTM(3, 2, { bidirectional: true }), "3, 2, numLayers=1, bidirectional=true"],
  [new nn.GRUCell(3, 2, { bias: false }), "3, 2, bias=false"],
  [new nn.RNNCell(3, 2), "3, 2, bias=true"],
  [new nn.MultiheadAttention(4, 2, { dropout: 0.1, batchFirst: true }), "4, 2, dropout=0.1, batchFirst=true"],
  [new nn.TransformerEncoderLayer(4, 2, { dimFeedforward: 2, normFirst: true }), "normFirst=true"],
])("%s", (layer, text) => expect(layer.describe()).toBe(text));

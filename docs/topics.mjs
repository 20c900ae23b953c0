/** How the API is laid out: topics by source file, groups of Tensor's members, and exports that only our packages use. */

/** @type {Record<string, [title: string, files: RegExp][]>} */
export const TOPICS = {
  "@opt/core": [
    ["Tensor", /^(tensor\/(tensor|fluent)|values\/(dtype|shape))\b/],
    ["Create tensors", /^(create|ranges|values\/literal)\b/],
    ["Random numbers", /^(draws|values\/generator)\b/],
    ["Arithmetic", /^(functions|rule\/symbols|ops\/elementwise\/(?!.*activations)|ops\/complex)/],
    ["Activations", /^ops\/elementwise\/.*activations/],
    ["Shape", /^ops\/shape\//],
    ["Reduce and sort", /^ops\/reduce\//],
    ["Index", /^ops\/indices\//],
    ["Matrices", /^(ops\/linear-algebra|ops\/einsum|tensor-methods)/],
    ["Images and rows", /^ops\/(windows|rows)\//],
    ["Gradients", /^(autograd|recompute|ops\/with-gradient|tensor\/(tape|gradient-hooks)|optimizer\/gradients)/],
    ["Mixed precision", /^(loss-scaling|ops\/autocast)/],
    ["Compile", /^(compile\/|device\/host-code)/],
    ["Devices and memory", /^(device\/|backend\/)/],
    ["Optimizers", /^(optimizer\/|averages\/|stepping\/)/],
    ["Sparse rows", /^row-sparse\//],
    ["Rules", /^(rule\/|ops\/apply-rule)/],
    ["Errors", /^(errors|debug|profile)\//],
    ["More", /./],
  ],
  "@opt/nn": [
    ["Module", /^(module\/|layers\/container\/|layers\/layer-options)/],
    ["Layers", /^layers\/(linear|flatten|embedding|dropout)/],
    ["Activation layers", /^layers\/activation\//],
    ["Convolution and pooling", /^layers\/(conv|pool|resize)\//],
    ["Normalization", /^layers\/norm\//],
    ["Attention and transformers", /^(attention|transformer)\//],
    ["Recurrent layers", /^recurrent\//],
    ["Losses", /^(losses|similarity)\//],
    ["Initializers", /^initializers\//],
    ["More layers", /./],
  ],
};

/** @type {[title: string, names: string[]][]} */
export const TENSOR_GROUPS = [
  ["Properties", "shape dtype device size requiresGrad grad name".split(" ")],
  ["Read and write", "data dataSync item bytes set clone to print toString dispose".split(" ")],
  ["Gradient", "backward detach".split(" ")],
  ["Shape", "reshape transpose permute slice select at squeeze unsqueeze expand flatten".split(" ")],
  ["Reduce", "sum mean max min argmax argmin var std norm softmax logSoftmax".split(" ")],
  ["Compare", "eq ne lt le gt ge".split(" ")],
];

/** Exported for other packages of this workspace; no user needs them. */
export const INTERNAL = new Set(
  `HostIo hostIo registerHostIo checkOptions OptionKind show AttentionForm fusedAttention BatchNormalized fusedBatchNorm fusedGroupNorm
  fusedLstm LstmOptions LstmResults needing combine Combination checkTensor crossEntropyRows logAddExp3 lowered
  binaryCrossEntropyTerms withFlatGradient resample AxisTaps nonFinite norms algorithmOf evict fillAgain isEvicted Around ruleHashes everyVariant ruleByVariant
  hostBytes markReplaced span checkNotSummary versionOf checkGenerator isRecomputing onGradient
  applyRuleInPlace runsOnce isTensor`.split(/\s+/),
);

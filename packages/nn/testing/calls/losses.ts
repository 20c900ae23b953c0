/** Calls of losses and similarities, of which PyTorch knows the values, the gradients and their gradients. */
import type { Tensor } from "@opt/core";
import type { CallInput, TorchCall } from "@opt/testkit";
import * as nn from "../../src/index";
import { python, RandomInputs } from "../random-inputs";

type Add = (name: string, inputs: readonly CallInput[], python: string, run: TorchCall["run"]) => void;

/** What is random in one configuration. */
interface Configuration {
  readonly make: RandomInputs;
  readonly dtype: "f32" | "f64";
  readonly shape: readonly number[];
  readonly reduction: nn.Reduction;
  readonly add: Add;
}

const REDUCTIONS: readonly nn.Reduction[] = ["mean", "sum", "none"];

/** Each loss in `count` random configurations. */
export function lossCalls(count: number): TorchCall[] {
  const make = new RandomInputs(31);
  const calls: TorchCall[] = [];
  for (let i = 0; i < count; i++) {
    const dtype = i % 2 === 0 ? "f64" : "f32";
    const reduction = make.random.pick(REDUCTIONS);
    const shape = Array.from({ length: make.between(1, 3) }, () => make.between(1, 4));
    const add: Add = (name, inputs, code, run) =>
      calls.push({
        name: `${i}: ${name} of [${shape}], ${reduction}, ${dtype}`,
        inputs,
        code: code.replace(/\)$/, `, reduction="${reduction}")`),
        run,
        second: dtype === "f64" && !name.startsWith("multiMargin"), // of which PyTorch has none
      });
    const configuration = { make, dtype, shape, reduction, add } as const;
    for (const family of [elementwise, likelihoods, margins, embeddings]) family(configuration);
    similarities({
      ...configuration,
      add: (name, inputs, code, run) =>
        calls.push({ name: `${i}: ${name} of [${shape}], ${dtype}`, inputs, code, run, second: dtype === "f64" }),
    });
  }
  return calls;
}

function elementwise({ make, dtype, shape, reduction, add }: Configuration): void {
  // PyTorch's second gradient adds 1e-12 to probabilities, which shows where they are small.
  const probabilities = () => make.numbers(shape, dtype, { low: 0.3, high: 0.7 });
  const weighted = make.flip();
  add(
    "binaryCrossEntropy",
    [probabilities(), probabilities(), make.numbers(shape.slice(-1), dtype, { low: 0, requiresGrad: false })],
    `F.binary_cross_entropy(a, b, weight=${weighted ? "c.expand(a.shape)" : "None"})`,
    (a, b, c) => nn.binaryCrossEntropy(a!, b!, { reduction, ...(weighted && { weight: c! }) }),
  );
  const beta = make.random.pick([0, 0.3, 1, 2.5]);
  add(`smoothL1Loss ${beta}`, pair(make, shape, dtype), `F.smooth_l1_loss(a, b, beta=${beta})`, (a, b) =>
    nn.smoothL1Loss(a!, b!, { reduction, beta }),
  );
}

function pair(make: RandomInputs, shape: readonly number[], dtype: "f32" | "f64"): CallInput[] {
  return [make.numbers(shape, dtype), make.numbers(shape, dtype)];
}

function likelihoods({ make, dtype, shape, reduction, add }: Configuration): void {
  const [full, logInput] = [make.flip(), make.flip()];
  const variances = [shape, [...shape.slice(0, -1), 1], shape.slice(0, -1)];
  const variance = make.random.pick(variances);
  add(
    `gaussianNllLoss ${full} with variance [${variance}]`,
    [...pair(make, shape, dtype), make.numbers(variance, dtype, { low: 0.05, high: 2 })],
    `F.gaussian_nll_loss(a, b, c, full=${python(full)}, eps=0.3)`,
    (a, b, c) => nn.gaussianNllLoss(a!, b!, c!, { reduction, full, eps: 0.3 }),
  );
  add(
    `poissonNllLoss ${logInput} ${full}`,
    [make.numbers(shape, dtype, { low: 0.1 }), make.numbers(shape, dtype, { low: 0.2, high: 4, requiresGrad: !full })],
    `F.poisson_nll_loss(a, b, log_input=${python(logInput)}, full=${python(full)}, eps=1e-3)`,
    (a, b) => nn.poissonNllLoss(a!, b!, { reduction, logInput, full, eps: 1e-3 }),
  );
}

function margins({ make, dtype, shape, reduction, add }: Configuration): void {
  const margin = make.random.pick([0, 0.5, 1.5]);
  const signs: CallInput = { ...make.whole(shape, 2), dtype };
  const targets = { ...signs, values: Array.from(signs.values, (value) => 2 * value - 1) };
  add(
    `marginRankingLoss ${margin}`,
    [...pair(make, shape, dtype), targets],
    `F.margin_ranking_loss(a, b, c, margin=${margin})`,
    (a, b, c) => nn.marginRankingLoss(a!, b!, c!, { reduction, margin }),
  );
  add(
    `hingeEmbeddingLoss ${margin}`,
    [make.numbers(shape, dtype), targets],
    `F.hinge_embedding_loss(a, b, margin=${margin})`,
    (a, b) => nn.hingeEmbeddingLoss(a!, b!, { reduction, margin }),
  );
  add("softMarginLoss", [make.numbers(shape, dtype), targets], "F.soft_margin_loss(a, b)", (a, b) =>
    nn.softMarginLoss(a!, b!, { reduction }),
  );
  const several = [...(make.flip() ? [make.between(1, 4)] : []), make.between(1, 5)];
  add(
    `multiMarginLoss of several labels of [${several}]`,
    [make.numbers(several, dtype), make.whole(several, several.at(-1)!, -1, 0.3)],
    "F.multilabel_margin_loss(a, b.long())",
    (a, b) => nn.multiLabelMarginLoss(a!, b!, { reduction }),
  );
  add(
    "multiLabelSoftMarginLoss",
    [
      make.numbers(several, dtype),
      { ...make.whole(several, 2), dtype },
      make.numbers(several.slice(-1), dtype, { low: 0.2, requiresGrad: false }),
    ],
    "F.multilabel_soft_margin_loss(a, b, weight=c)",
    (a, b, c) => nn.multiLabelSoftMarginLoss(a!, b!, { reduction, weight: c! }),
  );
  const [p, classes, weighted] = [make.between(1, 2), make.between(1, 5), make.flip()];
  const rows = make.flip() ? [make.between(1, 4)] : [];
  add(
    `multiMarginLoss ${p} ${margin} of [${rows}]`,
    [
      make.numbers([...rows, classes], dtype),
      make.whole(rows, classes),
      make.numbers([classes], dtype, { low: 0.2, requiresGrad: false }),
    ],
    `F.multi_margin_loss(a, b.long(), p=${p}, margin=${margin}, weight=${weighted ? "c" : "None"})`,
    (a, b, c) => nn.multiMarginLoss(a!, b!, { reduction, p, margin, ...(weighted && { weight: c! }) }),
  );
}

function embeddings({ make, dtype, shape, reduction, add }: Configuration): void {
  const [margin, p, swap] = [make.random.pick([0.3, 1]), make.random.pick([1, 2, 3]), make.flip()];
  add(
    `tripletMarginLoss ${margin} ${p} ${swap}`,
    [...pair(make, shape, dtype), make.numbers(shape, dtype)],
    `F.triplet_margin_loss(a, b, c, margin=${margin}, p=${p}, eps=1e-4, swap=${python(swap)})`,
    (a, b, c) => nn.tripletMarginLoss(a!, b!, c!, { reduction, margin, p, eps: 1e-4, swap }),
  );
  const vectors = shape.slice(0, 2);
  const signs: CallInput = { ...make.whole(vectors.slice(0, -1), 2), dtype };
  add(
    `cosineEmbeddingLoss ${margin / 4}`,
    [...pair(make, vectors, dtype), { ...signs, values: Array.from(signs.values, (value) => 2 * value - 1) }],
    `F.cosine_embedding_loss(a, b, c, margin=${margin / 4})`,
    (a, b, c) => nn.cosineEmbeddingLoss(a!, b!, c!, { reduction, margin: margin / 4 }),
  );
}

function similarities({ make, dtype, shape, add }: Configuration): void {
  const axis = make.between(-shape.length, shape.length - 1);
  const narrow = shape.map((extent) => (make.flip() ? extent : 1));
  const eps = make.random.pick([1e-8, 1]);
  add(
    `cosineSimilarity ${axis} ${eps} with [${narrow}]`,
    [make.numbers(shape, dtype), make.numbers(narrow, dtype)],
    `F.cosine_similarity(a, b, dim=${axis}, eps=${eps})`,
    (a, b) => nn.cosineSimilarity(a!, b!, { axis, eps }),
  );
  const p = make.random.pick([1, 2, 3, 0.5]);
  const low = make.random.pick([-2, 0.1]);
  add(
    `normalize ${p} ${axis} ${eps}`,
    [make.numbers(shape, dtype, { low })],
    `F.normalize(a, p=${p}, dim=${axis}, eps=${eps})`,
    (a) => nn.normalize(a!, { p, axis, eps }),
  );
  const keepDim = make.flip();
  add(
    `pairwiseDistance ${p} ${keepDim}`,
    pair(make, shape, dtype),
    `F.pairwise_distance(a, b, p=${p}, eps=1e-3, keepdim=${python(keepDim)})`,
    (a, b) => nn.pairwiseDistance(a!, b!, { p, eps: 1e-3, keepDim }),
  );
}

/** Probabilities of 0 and 1, equal vectors, and what else lies on a kink. */
export const lossesAtEdges: readonly TorchCall[] = (["f64", "f32"] as const).flatMap((dtype) => {
  const given = (...values: number[]): CallInput => ({ values, shape: [values.length], dtype, requiresGrad: true });
  const call = (code: string, run: (...inputs: [Tensor, Tensor, Tensor]) => Tensor, ...inputs: CallInput[]) =>
    ({
      name: `${code} at edges, ${dtype}`,
      inputs,
      code,
      run: (...all: Tensor[]) => run(...(all as [Tensor, Tensor, Tensor])),
    }) as TorchCall;
  const signs = { ...given(1, -1, 1), requiresGrad: false };
  return [
    call(
      'F.binary_cross_entropy(a, b, reduction="none")',
      (a, b) => nn.binaryCrossEntropy(a, b, { reduction: "none" }),
      given(0, 0, 1, 1, 0.5, 1e-6, 1e-20),
      { ...given(0, 1, 0, 1, 0.5, 0, 1), requiresGrad: false },
    ),
    call("F.smooth_l1_loss(a, b)", (a, b) => nn.smoothL1Loss(a, b), given(0, 1, -1), given(0, 0.5, 1)),
    call(
      "F.margin_ranking_loss(a, b, c)",
      (a, b, c) => nn.marginRankingLoss(a, b, c),
      given(1, 2, 3),
      given(1, 2, 1),
      signs,
    ),
    call(
      "F.triplet_margin_loss(a, b, c)",
      (a, b, c) => nn.tripletMarginLoss(a, b, c),
      given(1, 2),
      given(1, 2),
      given(1, 2),
    ),
    call(
      "F.cosine_similarity(a, b, dim=0)",
      (a, b) => nn.cosineSimilarity(a, b, { axis: 0 }),
      given(0, 0),
      given(1, 2),
    ),
    call("F.normalize(a, dim=0)", (a) => nn.normalize(a, { axis: 0 }), given(0, 0)),
  ];
});

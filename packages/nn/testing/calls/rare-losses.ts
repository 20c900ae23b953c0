/** Rare arguments of losses: targets of 0 and 1, ignored classes with weights and smoothing, each reduction, no rows, many rows. */
import type { Tensor } from "@opt/core";
import type { CallInput, Sweep, TorchCall } from "@opt/testkit";
import * as nn from "../../src/index";
import { python, RandomInputs } from "../random-inputs";

const REDUCTIONS: readonly nn.Reduction[] = ["mean", "sum", "none"];
const TOLERANCE = { f32: { absolute: 1e-5, relative: 1e-4 }, f64: { absolute: 1e-10, relative: 1e-10 } } as const;

interface Drawing {
  readonly make: RandomInputs;
  readonly i: number;
  readonly dtype: "f32" | "f64";
  readonly shape: readonly number[];
  readonly reduction: nn.Reduction;
}

interface Drawn {
  readonly inputs: readonly CallInput[];
  /** Without the reduction, which is its last argument. */
  readonly code: string;
  readonly run: (...inputs: [Tensor, Tensor, Tensor, Tensor]) => Tensor;
  readonly second?: boolean;
}

export function rareLosses(count: number): Sweep {
  const make = new RandomInputs(3101);
  const times = (name: string, of: (drawing: Drawing) => Drawn) =>
    Array.from({ length: count }, (_, i): TorchCall => {
      const dtype = i % 3 === 2 ? "f32" : "f64";
      const reduction = REDUCTIONS[i % 3 === 2 ? make.between(0, 2) : Math.floor(i / 2) % 3]!;
      const rank = make.between(1, 3);
      const shape = Array.from({ length: rank }, () => make.random.pick([1, 2, 3, 4]));
      const sized = make.random.below(10) === 0 ? shape.with(0, make.random.pick([0, 300])) : shape;
      const { inputs, code, run, second = true } = of({ make, i, dtype, shape: sized, reduction });
      const whole = code.includes("reduction=") ? code : code.replace(/\)$/, `, reduction="${reduction}")`);
      return {
        name: `${i}: ${name} of [${inputs[0]!.shape}], ${dtype}`,
        inputs,
        code: whole,
        run: (...given) => run(...(given as [Tensor, Tensor, Tensor, Tensor])),
        second: second && dtype === "f64",
        tolerance: TOLERANCE[dtype],
      };
    });
  const all = Object.entries(LOSSES).map(([name, of]) => [`${name}, rare`, times(name, of)] as const);
  return Object.fromEntries(all);
}

/** Numbers that are often exactly one of these. */
function often(make: RandomInputs, given: CallInput, values: readonly number[]): CallInput {
  return { ...given, values: Array.from(given.values, (value) => (make.flip() ? make.random.pick(values) : value)) };
}

const fixed = (given: CallInput): CallInput => ({ ...given, requiresGrad: false });
const chance = { low: 0, high: 1 };

/** Some ignored, never all: of no row the mean is NaN. */
function labels({ make }: Drawing, shape: readonly number[], classes: number, ignored: number): CallInput {
  const given = make.whole(shape, classes);
  const drop = Array.from(given.values, (value, i) => (i > 0 && make.random.below(3) === 0 ? ignored : value));
  return { ...given, values: drop };
}

/** Classes on axis 1 as PyTorch has them, or on the last. */
function classified(drawing: Drawing) {
  const { make, dtype, shape } = drawing;
  const classes = make.random.pick([2, 3, 5, 40]);
  const [rows, rest] = [Math.max(shape[0]!, 1), shape.slice(1)];
  const last = make.flip();
  const whole = last ? [rows, ...rest, classes] : [rows, classes, ...rest];
  const moved = last && rest.length > 0 ? "a.movedim(-1, 1).contiguous()" : "a";
  const ignoreIndex = make.random.pick([-100, -1, 0, classes - 1]);
  const weighted = make.flip();
  return {
    ...{ classes, moved, ignoreIndex, weighted, whole },
    scores: make.numbers(whole, dtype, { low: -5, high: 5 }),
    given: labels(drawing, [rows, ...rest], classes, ignoreIndex),
    weight: make.numbers([classes], dtype, { low: 0.2, requiresGrad: false }),
    axis: last ? -1 : 1,
  };
}

const LOSSES: Readonly<Record<string, (drawing: Drawing) => Drawn>> = {
  crossEntropy: (drawing) => {
    const { make, reduction } = drawing;
    const { moved, ignoreIndex, weighted, scores, given, weight, axis } = classified(drawing);
    const labelSmoothing = make.random.pick([0, 0.1, 0.5, 1]);
    return {
      inputs: [scores, given, weight],
      code: `F.cross_entropy(${moved}, b.long(), ${weighted ? "c" : "None"}, ignore_index=${ignoreIndex}, label_smoothing=${labelSmoothing})`,
      run: (a, b, c) =>
        nn.crossEntropy(a, b, { axis, reduction, ignoreIndex, labelSmoothing, ...(weighted && { weight: c }) }),
    };
  },
  "crossEntropy of lists": (drawing) => {
    const { make, reduction } = drawing;
    const { moved, ignoreIndex, weighted, scores, given, weight, axis } = classified(drawing);
    const labelSmoothing = make.random.pick([0, 0.3]);
    const list = Int32Array.from(given.values);
    return {
      inputs: [scores, given, weight],
      code: `F.cross_entropy(${moved}, b.long(), ${weighted ? "c" : "None"}, ignore_index=${ignoreIndex}, label_smoothing=${labelSmoothing})`,
      run: (a, _, c) =>
        nn.crossEntropy(a, list, { axis, reduction, ignoreIndex, labelSmoothing, ...(weighted && { weight: c }) }),
    };
  },
  "crossEntropy of probabilities": (drawing) => {
    const { make, dtype, reduction } = drawing;
    const { moved, weighted, scores, weight, axis, whole } = classified(drawing);
    const labelSmoothing = make.random.pick([0, 0.1, 1]);
    const target = moved.replace("a", "b");
    return {
      inputs: [scores, often(make, make.numbers(whole, dtype, chance), [0, 1]), weight],
      code: `F.cross_entropy(${moved}, ${moved === "a" ? "b" : target}, ${weighted ? "c" : "None"}, label_smoothing=${labelSmoothing})`,
      run: (a, b, c) => nn.crossEntropy(a, b, { axis, reduction, labelSmoothing, ...(weighted && { weight: c }) }),
    };
  },
  nllLoss: (drawing) => {
    const { reduction } = drawing;
    const { moved, ignoreIndex, weighted, scores, given, weight, axis } = classified(drawing);
    return {
      inputs: [scores, given, weight],
      code: `F.nll_loss(${moved}, b.long(), ${weighted ? "c" : "None"}, ignore_index=${ignoreIndex})`,
      run: (a, b, c) => nn.nllLoss(a, b, { axis, reduction, ignoreIndex, ...(weighted && { weight: c }) }),
    };
  },
  binaryCrossEntropy: ({ make, dtype, shape, reduction }) => {
    const weighted = make.flip();
    return {
      inputs: [
        often(make, make.numbers(shape, dtype, chance), [0, 1, 0.5]),
        fixed(often(make, make.numbers(shape, dtype, chance), [0, 1])),
        make.numbers(shape.slice(-1), dtype, { low: 0, requiresGrad: false }),
      ],
      code: `F.binary_cross_entropy(a, b, weight=${weighted ? "c.expand(a.shape)" : "None"})`,
      run: (a, b, c) => nn.binaryCrossEntropy(a, b, { reduction, ...(weighted && { weight: c }) }),
      second: false,
    };
  },
  bceWithLogits: ({ make, dtype, shape, reduction }) => {
    const [weighted, positive] = [make.flip(), make.flip()];
    return {
      inputs: [
        often(make, make.numbers(shape, dtype, { low: -9, high: 9 }), [0, -200, 200]),
        often(make, make.numbers(shape, dtype, chance), [0, 1]),
        make.numbers(shape.slice(-1), dtype, { low: 0, requiresGrad: false }),
        make.numbers(shape.slice(-1), dtype, { low: 0, requiresGrad: false }),
      ],
      code: `F.binary_cross_entropy_with_logits(a, b, ${weighted ? "c" : "None"}, pos_weight=${positive ? "d" : "None"})`,
      run: (a, b, c, d) =>
        nn.bceWithLogits(a, b, { reduction, ...(weighted && { weight: c }), ...(positive && { posWeight: d }) }),
    };
  },
  klDiv: ({ make, dtype, shape, reduction }) => {
    const [logTarget, batch] = [make.flip(), make.random.below(3) === 0];
    const target = make.numbers(shape, dtype, { low: logTarget ? -4 : 0, high: 1 });
    return {
      inputs: [make.numbers(shape, dtype), fixed(logTarget ? often(make, target, [0]) : often(make, target, [0, 1]))],
      code: `F.kl_div(a, b, log_target=${python(logTarget)}, reduction="${batch ? "batchmean" : reduction}")`,
      run: (a, b) => nn.klDiv(a, b, { reduction: batch ? "batchMean" : reduction, logTarget }),
    };
  },
  poissonNllLoss: ({ make, dtype, shape, reduction }) => {
    const [logInput, full] = [make.flip(), make.flip()];
    const eps = make.random.pick([1e-8, 1e-2]);
    const x = make.numbers(shape, dtype, { low: logInput ? -3 : 0, high: 3 });
    return {
      inputs: [
        logInput ? x : often(make, x, [0]),
        fixed(often(make, make.numbers(shape, dtype, { low: 0, high: 6 }), [0, 1, 2])),
      ],
      code: `F.poisson_nll_loss(a, b, log_input=${python(logInput)}, full=${python(full)}, eps=${eps})`,
      run: (a, b) => nn.poissonNllLoss(a, b, { reduction, logInput, full, eps }),
    };
  },
  gaussianNllLoss: ({ make, dtype, shape, reduction }) => {
    const full = make.flip();
    const eps = make.random.pick([1e-6, 0.3]);
    const variance = make.random.pick([shape, [...shape.slice(0, -1), 1], shape.slice(0, -1)]);
    const near = make.numbers(variance, dtype, { low: 0, high: 2, requiresGrad: make.flip() });
    return {
      inputs: [make.numbers(shape, dtype), make.numbers(shape, dtype), often(make, near, [1])],
      code: `F.gaussian_nll_loss(a, b, c, full=${python(full)}, eps=${eps})`,
      run: (a, b, c) => nn.gaussianNllLoss(a, b, c, { reduction, full, eps }),
    };
  },
  smoothL1Loss: ({ make, dtype, shape, reduction }) => {
    const beta = make.random.pick([0, 0.5, 1, 3]);
    const [a, b] = [make.numbers(shape, dtype), make.numbers(shape, dtype)];
    const kinks = often(make, a, [0, beta, -beta]);
    return {
      inputs: [kinks, often(make, b, [0])],
      code: `F.smooth_l1_loss(a, b, beta=${beta})`,
      run: (a, b) => nn.smoothL1Loss(a, b, { reduction, beta }),
    };
  },
  huberLoss: ({ make, dtype, shape, reduction }) => {
    const delta = make.random.pick([0.5, 1, 3]);
    return {
      inputs: [
        often(make, make.numbers(shape, dtype), [0, delta, -delta]),
        often(make, make.numbers(shape, dtype), [0]),
      ],
      code: `F.huber_loss(a, b, delta=${delta})`,
      run: (a, b) => nn.huberLoss(a, b, { reduction, delta }),
    };
  },
  l1Loss: ({ make, dtype, shape, reduction }) => ({
    inputs: [often(make, make.numbers(shape, dtype), [0]), often(make, make.numbers(shape, dtype), [0])],
    code: "F.l1_loss(a, b)",
    run: (a, b) => nn.l1Loss(a, b, { reduction }),
  }),
  mseLoss: ({ make, dtype, shape, reduction }) => ({
    inputs: [make.numbers(shape, dtype), make.numbers(shape, dtype)],
    code: "F.mse_loss(a, b)",
    run: (a, b) => nn.mseLoss(a, b, { reduction }),
  }),
  marginRankingLoss: ({ make, dtype, shape, reduction }) => {
    const margin = make.random.pick([0, 0.5, -1]);
    const signs = make.numbers(shape, dtype, { requiresGrad: false });
    return {
      inputs: [
        often(make, make.numbers(shape, dtype), [0, 1]),
        often(make, make.numbers(shape, dtype), [0, 1]),
        { ...signs, values: Array.from(signs.values, (value) => (value < 0 ? -1 : 1)) },
      ],
      code: `F.margin_ranking_loss(a, b, c, margin=${margin})`,
      run: (a, b, c) => nn.marginRankingLoss(a, b, c, { reduction, margin }),
    };
  },
  multiMarginLoss: ({ make, dtype, reduction }) => {
    const [p, classes, weighted] = [make.between(1, 2), make.between(1, 6), make.flip()];
    const margin = make.random.pick([0.5, 1, 0]);
    const rows = make.random.pick([[], [1], [5]]);
    return {
      inputs: [
        make.numbers([...rows, classes], dtype),
        make.whole(rows, classes),
        make.numbers([classes], dtype, { low: 0.2, requiresGrad: false }),
      ],
      code: `F.multi_margin_loss(a, b.long(), p=${p}, margin=${margin}, weight=${weighted ? "c" : "None"})`,
      run: (a, b, c) => nn.multiMarginLoss(a, b, { reduction, p, margin, ...(weighted && { weight: c }) }),
      second: false, // of which PyTorch has none
    };
  },
  tripletMarginLoss: ({ make, dtype, shape, reduction }) => {
    const [margin, p, swap] = [make.random.pick([0.1, 1, 4]), make.random.pick([1, 2, 3]), make.flip()];
    const eps = make.random.pick([1e-6, 1e-2]);
    const x = () => make.numbers(shape, dtype);
    return {
      inputs: [x(), x(), x()],
      code: `F.triplet_margin_loss(a, b, c, margin=${margin}, p=${p}, eps=${eps}, swap=${python(swap)})`,
      run: (a, b, c) => nn.tripletMarginLoss(a, b, c, { reduction, margin, p, eps, swap }),
    };
  },
  cosineEmbeddingLoss: ({ make, dtype, shape, reduction }) => {
    const margin = make.random.pick([-0.5, 0, 0.5]);
    const vectors = shape.slice(0, 2);
    const signs = make.numbers(vectors.slice(0, -1), dtype, { requiresGrad: false });
    return {
      inputs: [
        make.numbers(vectors, dtype),
        make.numbers(vectors, dtype),
        { ...signs, values: Array.from(signs.values, (value) => (value < 0 ? -1 : 1)) },
      ],
      code: `F.cosine_embedding_loss(a, b, c, margin=${margin})`,
      run: (a, b, c) => nn.cosineEmbeddingLoss(a, b, c, { reduction, margin }),
    };
  },
};

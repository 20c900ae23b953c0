/** The Kullback-Leibler divergence of pairs of distributions, by the names of their classes: a page loads no class for it. */
import { full } from "../create";
import { tidy } from "../device/scope";
import { OptError } from "../errors/errors";
import { digamma, erf, lgamma, logicalOr, softplus, sub, where, xlogy } from "../functions";
import type { Tensor } from "../tensor/tensor";
import { sameShape } from "../values/shape";
import type { Bernoulli } from "./bernoulli";
import type { Beta } from "./beta";
import type { Categorical } from "./categorical";
import type { Dirichlet } from "./dirichlet";
import { checkDistribution, type Distribution, sumRightmost } from "./distribution";
import type { Exponential } from "./exponential";
import type { Gamma } from "./gamma";
import type { HalfNormal } from "./half-normal";
import type { Independent } from "./independent";
import type { Laplace } from "./laplace";
import type { MultivariateNormal } from "./multivariate-normal";
import type { Normal } from "./normal";
import type { OneHotCategorical } from "./one-hot-categorical";
import type { Poisson } from "./poisson";
import type { TransformedDistribution } from "./transformed-distribution";
import { equalTransforms } from "./transforms/transform";
import type { Uniform } from "./uniform";

const EULER = 0.5772156649015329;

/** Without a gradient. */
const infinite = ({ shape, dtype, device }: Tensor) => full(shape, Number.POSITIVE_INFINITY, { dtype, device });
const xLogX = (x: Tensor) => xlogy(x, x);
const unless = (condition: Tensor, value: Tensor) => where(condition, Number.POSITIVE_INFINITY, value);
const oneMinus = (x: Tensor) => sub<Tensor>(1, x);

const betweenBetas = (p: Beta, q: Beta) => {
  const [totalP, totalQ] = [p, q].map((each) => each.concentration1.add(each.concentration0)) as [Tensor, Tensor];
  const logIntegral = (each: Beta, total: Tensor) =>
    lgamma(each.concentration1).add(lgamma(each.concentration0)).sub(lgamma(total));
  return logIntegral(q, totalQ)
    .sub(logIntegral(p, totalP))
    .add(p.concentration1.sub(q.concentration1).mul(digamma(p.concentration1)))
    .add(p.concentration0.sub(q.concentration0).mul(digamma(p.concentration0)))
    .add(totalQ.sub(totalP).mul(digamma(totalP)));
};

const betweenNormals = (p: Normal, q: Normal) => {
  const ratio = p.scale.div(q.scale).square();
  return ratio.add(p.loc.sub(q.loc).div(q.scale).square()).sub(1).sub(ratio.log()).mul(0.5);
};

const betweenCategoricals = (p: Categorical, q: Categorical) => {
  const [ofP, ofQ] = [p.probs, q.probs];
  const term = unless(ofQ.eq(0), ofP.mul(p.logits.sub(q.logits)));
  return where(ofP.eq(0), 0, term).sum(-1);
};

function betweenTransformed(p: TransformedDistribution, q: TransformedDistribution): Tensor {
  const isSame = equalTransforms(p.transforms, q.transforms) && sameShape(p.eventShape, q.eventShape);
  if (!isSame) throw missing(p, q);
  return divergenceOf(p.base, q.base);
}

function betweenIndependents(p: Independent, q: Independent): Tensor {
  if (p.count !== q.count) throw missing(p, q);
  return sumRightmost(divergenceOf(p.base, q.base), p.count);
}

function betweenVectors(p: MultivariateNormal, q: MultivariateNormal): Tensor {
  if (!sameShape(p.eventShape, q.eventShape)) throw missing(p, q);
  const trace = q.solved(p.scaleTril).square().sum([-2, -1]);
  const terms = trace.add(q.squaredDistance(q.loc.sub(p.loc))).sub(p.eventShape[0]!);
  return q.logDeterminant().sub(p.logDeterminant()).add(terms.mul(0.5));
}

/** The mean of -log q, where q is normal and p has these moments. */
function crossOfNormal({ loc, scale }: Normal, mean: Tensor, variance: Tensor): Tensor {
  const square = mean.sub(loc).square().add(variance);
  return scale
    .log()
    .add(square.div(scale.square().mul(2)))
    .add(0.5 * Math.log(2 * Math.PI));
}

const logIntegralOfGamma = ({ concentration, rate }: Gamma) => lgamma(concentration).sub(concentration.mul(rate.log()));

/** The mean of log x, of numbers between two. */
function meanLogOf(low: Tensor, high: Tensor): Tensor {
  return xLogX(high).sub(xLogX(low)).div(high.sub(low)).sub(1);
}

/** By the classes of p and q. */
const PAIRS = {
  "Bernoulli Bernoulli": (p: Bernoulli, q: Bernoulli) => {
    const [ofP, ofQ] = [p.probs, q.probs];
    const side = (share: Tensor, sign: 1 | -1, isNever: Tensor, isImpossible: Tensor) => {
      const of = ({ logits }: Bernoulli) => softplus(logits.mul(sign));
      return where(isNever, 0, unless(isImpossible, share.mul(of(q).sub(of(p)))));
    };
    return side(ofP, -1, ofP.eq(0), ofQ.eq(0)).add(side(oneMinus(ofP), 1, ofP.eq(1), ofQ.eq(1)));
  },
  "Bernoulli Poisson": (p: Bernoulli, q: Poisson) => p.entropy().neg().sub(p.probs.mul(q.rate.log()).sub(q.rate)),
  "Beta Beta": betweenBetas,
  "Beta Exponential": (p: Beta, q: Exponential) => p.entropy().neg().sub(q.rate.log()).add(q.rate.mul(p.mean)),
  "Beta Gamma": (p: Beta, q: Gamma) => {
    const meanLog = digamma(p.concentration1).sub(digamma(p.concentration1.add(p.concentration0)));
    return logIntegralOfGamma(q).sub(p.entropy()).sub(q.concentration.sub(1).mul(meanLog)).add(q.rate.mul(p.mean));
  },
  "Beta Normal": (p: Beta, q: Normal) =>
    p
      .entropy()
      .neg()
      .add(crossOfNormal(q, p.mean, p.variance)),
  "Beta Uniform": (p: Beta, q: Uniform) =>
    unless(logicalOr(q.low.gt(0), q.high.lt(1)), p.entropy().neg().add(q.high.sub(q.low).log())),
  "Categorical Categorical": betweenCategoricals,
  "Dirichlet Dirichlet": (p: Dirichlet, q: Dirichlet) => {
    const [a, b] = [p.concentration, q.concentration];
    const [totalA, totalB] = [a.sum(-1), b.sum(-1)];
    const logs = lgamma(totalA)
      .sub(lgamma(totalB))
      .sub(lgamma(a).sub(lgamma(b)).sum(-1));
    return logs.add(
      a
        .sub(b)
        .mul(digamma(a).sub(digamma(totalA).unsqueeze(-1)))
        .sum(-1),
    );
  },
  "Exponential Beta": (p: Exponential) => infinite(p.rate),
  "Exponential Uniform": (p: Exponential) => infinite(p.rate),
  "Exponential Exponential": (p: Exponential, q: Exponential) => {
    const ratio = q.rate.div(p.rate);
    return ratio.sub(ratio.log()).sub(1);
  },
  "Exponential Gamma": (p: Exponential, q: Gamma) => {
    const ratio = q.rate.div(p.rate);
    const logs = lgamma(q.concentration).sub(q.concentration.mul(ratio.log()));
    return logs
      .add(ratio)
      .add(q.concentration.mul(EULER))
      .sub(1 + EULER);
  },
  "Exponential Normal": (p: Exponential, q: Normal) =>
    p
      .entropy()
      .neg()
      .add(crossOfNormal(q, p.mean, p.variance)),
  "Gamma Beta": (p: Gamma) => infinite(p.rate),
  "Gamma Uniform": (p: Gamma) => infinite(p.rate),
  "Gamma Exponential": (p: Gamma, q: Exponential) => p.entropy().neg().sub(q.rate.log()).add(q.rate.mul(p.mean)),
  "Gamma Gamma": (p: Gamma, q: Gamma) => {
    const logs = q.concentration
      .mul(p.rate.div(q.rate).log())
      .add(lgamma(q.concentration))
      .sub(lgamma(p.concentration));
    const ofP = p.concentration.sub(q.concentration).mul(digamma(p.concentration));
    return logs.add(ofP).add(q.rate.sub(p.rate).mul(p.mean));
  },
  "Gamma Normal": (p: Gamma, q: Normal) =>
    p
      .entropy()
      .neg()
      .add(crossOfNormal(q, p.mean, p.variance)),
  "HalfNormal HalfNormal": (p: HalfNormal, q: HalfNormal) => betweenNormals(p.base, q.base),
  "Independent Independent": betweenIndependents,
  "Laplace Beta": (p: Laplace) => infinite(p.loc),
  "Laplace Exponential": (p: Laplace) => infinite(p.loc),
  "Laplace Gamma": (p: Laplace) => infinite(p.loc),
  "Laplace Uniform": (p: Laplace) => infinite(p.loc),
  "Laplace Laplace": (p: Laplace, q: Laplace) => {
    const ratio = p.scale.div(q.scale);
    const distance = p.loc.sub(q.loc).abs();
    const near = ratio.mul(distance.div(p.scale).neg().exp());
    return distance.div(q.scale).add(near).sub(ratio.log()).sub(1);
  },
  "Laplace Normal": (p: Laplace, q: Normal) =>
    p
      .entropy()
      .neg()
      .add(crossOfNormal(q, p.mean, p.variance)),
  "MultivariateNormal MultivariateNormal": betweenVectors,
  "Normal Beta": (p: Normal) => infinite(p.loc),
  "Normal Exponential": (p: Normal) => infinite(p.loc),
  "Normal Gamma": (p: Normal) => infinite(p.loc),
  "Normal Uniform": (p: Normal) => infinite(p.loc),
  "Normal Laplace": (p: Normal, q: Laplace) => {
    const distance = p.loc.sub(q.loc);
    const share = distance.div(p.scale);
    const meanDistance = p.scale
      .mul(Math.sqrt(2 / Math.PI))
      .mul(share.square().mul(-0.5).exp())
      .add(distance.mul(erf(share.mul(Math.SQRT1_2))));
    const logs = q.scale.div(p.scale).log();
    return logs.add(meanDistance.div(q.scale)).sub(0.5 * (1 + Math.log(0.5 * Math.PI)));
  },
  "Normal Normal": betweenNormals,
  "OneHotCategorical OneHotCategorical": (p: OneHotCategorical, q: OneHotCategorical) =>
    betweenCategoricals(p.categorical, q.categorical),
  "Poisson Bernoulli": (p: Poisson) => infinite(p.rate),
  "Poisson Poisson": (p: Poisson, q: Poisson) => p.rate.mul(p.rate.log().sub(q.rate.log())).sub(p.rate.sub(q.rate)),
  "Uniform Beta": (p: Uniform, q: Beta) => {
    const [ones, zeros] = [q.concentration1, q.concentration0];
    const logIntegral = lgamma(ones)
      .add(lgamma(zeros))
      .sub(lgamma(ones.add(zeros)));
    const logs = ones
      .sub(1)
      .mul(meanLogOf(p.low, p.high))
      .add(zeros.sub(1).mul(meanLogOf(oneMinus(p.high), oneMinus(p.low))));
    return unless(logicalOr(p.high.gt(1), p.low.lt(0)), logIntegral.sub(p.entropy()).sub(logs));
  },
  "Uniform Exponential": (p: Uniform, q: Exponential) =>
    unless(p.low.lt(0), q.rate.mul(p.mean).sub(p.high.sub(p.low).mul(q.rate).log())),
  "Uniform Gamma": (p: Uniform, q: Gamma) => {
    const ofMean = oneMinus(q.concentration).mul(meanLogOf(p.low, p.high)).add(q.rate.mul(p.mean));
    return unless(p.low.lt(0), ofMean.sub(p.high.sub(p.low).log()).add(logIntegralOfGamma(q)));
  },
  "Uniform Normal": (p: Uniform, q: Normal) =>
    p
      .entropy()
      .neg()
      .add(crossOfNormal(q, p.mean, p.variance)),
  "Uniform Uniform": (p: Uniform, q: Uniform) =>
    unless(logicalOr(q.low.gt(p.low), q.high.lt(p.high)), q.high.sub(q.low).div(p.high.sub(p.low)).log()),
} as const satisfies Record<string, (p: never, q: never) => Tensor>;

/** @throws OptError UNSUPPORTED for pairs without a formula */
function divergenceOf(p: Distribution, q: Distribution): Tensor {
  if ("transforms" in p && "transforms" in q)
    return betweenTransformed(p as TransformedDistribution, q as TransformedDistribution);
  const key = `${p.name} ${q.name}`;
  if (!Object.hasOwn(PAIRS, key)) throw missing(p, q);
  return (PAIRS[key as keyof typeof PAIRS] as (p: Distribution, q: Distribution) => Tensor)(p, q);
}

function missing(p: Distribution, q: Distribution): OptError {
  return new OptError(
    "UNSUPPORTED",
    "klDivergence",
    `there is no formula for these distributions, got ${p.name} and ${q.name}.`,
    "Take the mean of p.logProb(x) - q.logProb(x) over samples x of p.",
  );
}

/**
 * The Kullback-Leibler divergence of two distributions: the mean of log p(x) - log q(x) over x of p, [...batchShape]. It is there for the
 * pairs that PyTorch has.
 *
 * @throws OptError UNSUPPORTED for other pairs; BAD_ARGUMENT, BAD_SHAPE
 * @example
 * klDivergence(new Normal(0, 1), new Normal(tensor([0, 1]), 1)); // [0, 0.5]
 */
export function klDivergence(p: Distribution, q: Distribution): Tensor {
  checkDistribution("klDivergence", p);
  checkDistribution("klDivergence", q);
  return tidy(() => divergenceOf(p, q));
}

// Probability distributions with the formulas of PyTorch 2.13.
export { Bernoulli, type BernoulliOptions } from "./bernoulli";
export { Beta } from "./beta";
export { Categorical, type CategoricalOptions } from "./categorical";
export type { Constraint } from "./constraints";
export { Dirichlet } from "./dirichlet";
export { Distribution, type DistributionOptions } from "./distribution";
export { Exponential } from "./exponential";
export { Gamma } from "./gamma";
export { HalfNormal } from "./half-normal";
export { Independent } from "./independent";
export { klDivergence } from "./kl-divergence";
export { Laplace } from "./laplace";
export { LogNormal } from "./log-normal";
export { MultivariateNormal, type MultivariateNormalOptions } from "./multivariate-normal";
export { Normal } from "./normal";
export { OneHotCategorical } from "./one-hot-categorical";
export { Poisson } from "./poisson";
export { StudentT } from "./student-t";
export { TransformedDistribution } from "./transformed-distribution";
export {
  AffineTransform,
  type AffineTransformOptions,
  ExpTransform,
  SigmoidTransform,
  TanhTransform,
} from "./transforms/elementwise";
export { ComposeTransform, Transform, type TransformOptions } from "./transforms/transform";
export { Uniform } from "./uniform";

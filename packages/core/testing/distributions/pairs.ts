/** Pairs of random distributions whose divergence PyTorch knows. */
import type { CallInput, TorchCall } from "@opt/testkit";
import { klDivergence } from "../../src/distributions";
import type { Draw } from "../draw";
import { FAMILIES, placeOf } from "./families";

/** By the names of their families. */
export const PAIRS: readonly (readonly [p: string, q: string])[] = [
  ["Bernoulli by probs", "Bernoulli by logits"],
  ["Bernoulli by logits", "Poisson"],
  ["Beta", "Beta"],
  ["Beta", "Exponential"],
  ["Beta", "Gamma"],
  ["Beta", "Normal"],
  ["Beta", "Uniform"],
  ["Categorical by logits", "Categorical by probs"],
  ["Dirichlet", "Dirichlet"],
  ["Exponential", "Beta"],
  ["Exponential", "Exponential"],
  ["Exponential", "Gamma"],
  ["Exponential", "Normal"],
  ["Exponential", "Uniform"],
  ["Gamma", "Beta"],
  ["Gamma", "Exponential"],
  ["Gamma", "Gamma"],
  ["Gamma", "Normal"],
  ["Gamma", "Uniform"],
  ["HalfNormal", "HalfNormal"],
  ["Independent", "Independent"],
  ["Laplace", "Beta"],
  ["Laplace", "Exponential"],
  ["Laplace", "Gamma"],
  ["Laplace", "Laplace"],
  ["Laplace", "Normal"],
  ["Laplace", "Uniform"],
  ["LogNormal", "LogNormal"],
  ["MultivariateNormal by covariance", "MultivariateNormal by its triangle"],
  ["Normal", "Beta"],
  ["Normal", "Exponential"],
  ["Normal", "Gamma"],
  ["Normal", "Laplace"],
  ["Normal", "Normal"],
  ["Normal", "Uniform"],
  ["OneHotCategorical", "OneHotCategorical"],
  ["Poisson", "Bernoulli by probs"],
  ["Poisson", "Poisson"],
  ["Uniform", "Beta"],
  ["Uniform", "Exponential"],
  ["Uniform", "Gamma"],
  ["Uniform", "Normal"],
  ["Uniform", "Uniform"],
];

/** Those of probabilities, which may be 0 and 1, and of bounds, of which the one may be within the other. */
export const EDGES: readonly (readonly [p: string, q: string])[] = [
  ["Bernoulli by probs", "Bernoulli by probs"],
  ["Categorical by probs", "Categorical by probs"],
  ["Uniform", "Uniform"],
];

/** Some are 0 and some 1, but not all of a row of categories; bounds become whole. */
const atEdges = (draw: Draw, input: CallInput): CallInput => {
  const values = Array.from(input.values, (value, i) => {
    if (Math.abs(value) >= 1) return Math.round(value);
    return i % input.shape.at(-1)! === 0 ? value : draw.random.pick([0, 1, value]);
  });
  return { ...input, values, requiresGrad: false };
};

export function divergenceCall(
  [p, q]: readonly [string, string],
  draw: Draw,
  isAtEdges = false,
): Omit<TorchCall, "name"> {
  const [first, second] = [FAMILIES[p]!, FAMILIES[q]!];
  // PyTorch writes into what is infinite, which must have the shape of all.
  const place = isAtEdges ? { batch: [6, 4], isWhole: true, extent: 3 } : placeOf(draw, true);
  const drawn = [first, second].map(({ parameters }) => parameters(draw, place));
  const [ofP, ofQ] = drawn.map((list) => (isAtEdges ? list.map((input) => atEdges(draw, input)) : list)) as [
    readonly CallInput[],
    readonly CallInput[],
  ];
  const renamed = second.torch.replace(/\b[abc]\b/g, (letter) => "abcdef"["abc".indexOf(letter) + ofP.length]!);
  return {
    inputs: [...ofP, ...ofQ],
    code: `torch.distributions.kl_divergence(torch.distributions.${first.torch}, torch.distributions.${renamed})`,
    run: (...inputs) =>
      klDivergence(first.make(...inputs.slice(0, ofP.length)), second.make(...inputs.slice(ofP.length))),
  };
}

/** The factor by which weights make up for what a nonlinearity takes from the variance, with PyTorch's values. */
import { check, OptError, show } from "@opt/core";

export type Nonlinearity = "linear" | "sigmoid" | "tanh" | "relu" | "leakyRelu" | "selu";

/** PyTorch's `calculate_gain`: 1, sqrt(2), 5 / 3, ... @throws OptError BAD_ARGUMENT for an unknown name */
export function gainOf(nonlinearity: Nonlinearity, negativeSlope = 0.01): number {
  const isSlope = Number.isFinite(negativeSlope);
  check(isSlope, "BAD_ARGUMENT", "gainOf", () => `negativeSlope must be a finite number, got ${show(negativeSlope)}.`);
  switch (nonlinearity) {
    case "linear":
    case "sigmoid":
      return 1;
    case "tanh":
      return 5 / 3;
    case "relu":
      return Math.SQRT2;
    case "leakyRelu":
      return Math.sqrt(2 / (1 + negativeSlope ** 2));
    case "selu":
      return 3 / 4;
    default:
      throw new OptError(
        "BAD_ARGUMENT",
        "gainOf",
        `the nonlinearity must be linear, sigmoid, tanh, relu, leakyRelu or selu, got ${show(nonlinearity)}.`,
        "Use relu for GELU.",
      );
  }
}

/** Checks that the options of most optimizers share. */
import { OptError } from "../errors";

/** A number from 0 on; infinity is allowed, NaN is not. @throws OptError BAD_ARGUMENT */
export function checkNotNegative(where: string, name: string, value: unknown): void {
  if (typeof value !== "number" || !(value >= 0)) {
    throw new OptError("BAD_ARGUMENT", where, `${name} must be a number >= 0, got ${show(value)}.`, "Check its sign.");
  }
}

/** A pair of numbers in [0, 1). @throws OptError BAD_ARGUMENT */
export function checkBetas(where: string, betas: unknown): void {
  if (!Array.isArray(betas) || betas.length !== 2) {
    throw new OptError(
      "BAD_ARGUMENT",
      where,
      `betas must be two numbers, got ${show(betas)}.`,
      "The default is [0.9, 0.999].",
    );
  }
  betas.forEach((beta, i) => {
    if (typeof beta !== "number" || !(beta >= 0 && beta < 1)) {
      throw new OptError(
        "BAD_ARGUMENT",
        where,
        `betas[${i}] must be in [0, 1), got ${show(beta)}.`,
        `Use the default ${[0.9, 0.999][i]} or a value below 1.`,
      );
    }
  });
}

/** @throws OptError BAD_ARGUMENT */
export function checkBoolean(where: string, name: string, value: unknown): void {
  if (typeof value !== "boolean") {
    throw new OptError(
      "BAD_ARGUMENT",
      where,
      `${name} must be true or false, got ${show(value)}.`,
      "Leave it out for the default.",
    );
  }
}

function show(value: unknown): string {
  return typeof value === "number" ? String(value) : (JSON.stringify(value) ?? String(value));
}

/** How windows slide over images: options that all pools share. */
import { check, type MaxPoolOptions, type Pair, show, type WindowOptions } from "@opt/core";

/** For `checkOptions`. */
export const WINDOW_OPTIONS = {
  stride: ["number", "array"],
  padding: ["number", "array"],
  dilation: ["number", "array"],
} as const;

/** Throws where the layer is made, not at its first image. @throws OptError BAD_ARGUMENT */
export function checkWindow(where: string, kernelSize: Pair, window: WindowOptions): void {
  const { stride, padding, dilation } = window;
  const least = { kernelSize: 1, stride: 1, padding: 0, dilation: 1 };
  for (const [name, value] of Object.entries({ kernelSize, stride, padding, dilation })) {
    if (value === undefined && name !== "kernelSize") continue;
    const both: readonly unknown[] = Array.isArray(value) ? value : [value, value];
    const from = least[name as keyof typeof least];
    check(
      both.length === 2 && both.every((n) => Number.isInteger(n) && (n as number) >= from),
      "BAD_ARGUMENT",
      where,
      () => `${name} must be an integer >= ${from} or a pair of them, got ${show(value)}.`,
      "For example 2 or [2, 1].",
    );
  }
}

/** What differs from windows side by side: ", stride=2x1, padding=1". */
export function describeWindow(window: MaxPoolOptions): string {
  const plain: Readonly<Record<string, string>> = { padding: "0", dilation: "1", ceilMode: "false" };
  return Object.entries(window)
    .map(([name, value]) => [name, [value].flat().join("x")] as const)
    .filter(([name, value]) => value !== "" && value !== plain[name])
    .map(([name, value]) => `, ${name}=${value}`)
    .join("");
}

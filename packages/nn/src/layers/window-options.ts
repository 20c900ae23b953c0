/** How windows slide over images and volumes: options that all pools share. */
import { check, type Pair, show, type Triple } from "@opt/core";

/** For `checkOptions`. */
export const WINDOW_OPTIONS = {
  stride: ["number", "array"],
  padding: ["number", "array"],
  dilation: ["number", "array"],
} as const;

const { stride, padding } = WINDOW_OPTIONS;
/** For `checkOptions`, of averages. */
export const AVERAGE_OPTIONS = {
  stride,
  padding,
  countIncludePad: "boolean",
  ceilMode: "boolean",
  divisorOverride: "any",
} as const;

interface Window {
  readonly stride?: Pair | Triple;
  readonly padding?: Pair | Triple;
  readonly dilation?: Pair | Triple;
}

/** Throws where the layer is made, not at its first image. @throws OptError BAD_ARGUMENT */
export function checkWindow(
  where: string,
  kernelSize: Pair | Triple,
  window: Window,
  axes: 2 | 3 = 2,
  sizeName = "kernelSize",
): void {
  const { stride, padding, dilation } = window;
  const all = axes === 2 ? "a pair" : "three";
  for (const [name, value] of Object.entries({ [sizeName]: kernelSize, stride, padding, dilation })) {
    if (value === undefined && name !== sizeName) continue;
    const list: readonly unknown[] = Array.isArray(value) ? value : Array<unknown>(axes).fill(value);
    const from = name === "padding" ? 0 : 1;
    check(
      list.length === axes && list.every((n) => Number.isInteger(n) && (n as number) >= from),
      "BAD_ARGUMENT",
      where,
      () => `${name} must be an integer >= ${from} or ${all} of them, got ${show(value)}.`,
      axes === 2 ? "For example 2 or [2, 1]." : "For example 2 or [1, 2, 2].",
    );
  }
}

/** The same for averages. @throws OptError BAD_ARGUMENT */
export function checkAverage(
  where: string,
  kernelSize: Pair | Triple,
  { stride, padding, divisorOverride = null }: Window & { readonly divisorOverride?: number | null },
  axes: 2 | 3 = 2,
): void {
  checkWindow(where, kernelSize, { stride, padding }, axes);
  check(
    divisorOverride === null || (Number.isInteger(divisorOverride) && divisorOverride !== 0),
    "BAD_ARGUMENT",
    where,
    () => `divisorOverride must be an integer other than 0, or null, got ${show(divisorOverride)}.`,
    "Leave it out.",
  );
}

/** What differs from windows side by side: ", stride=2x1, padding=1". */
export function describeWindow(window: object): string {
  const plain: Readonly<Record<string, string>> = {
    padding: "0",
    dilation: "1",
    ceilMode: "false",
    countIncludePad: "true",
    divisorOverride: "",
  };
  return Object.entries(window)
    .map(([name, value]) => [name, [value].flat().join("x")] as const)
    .filter(([name, value]) => value !== "" && value !== plain[name])
    .map(([name, value]) => `, ${name}=${value}`)
    .join("");
}

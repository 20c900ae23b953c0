/** Which tensors of a source are meant, and as which dtype. */
import { check, OptError } from "@opt/core";
import { isFloating, storedDType } from "../format/dtype";
import { redescribed, type SelectedTensor, type TensorSource, type Verifier } from "../format/source";
import { matchesPattern } from "../layout/layout";
import { castTensor } from "./cast";

export interface Selection {
  /** Names, or patterns with `*`; all without it. */
  readonly names?: readonly string[];
  /**
   * The dtype to convert to: one for all tensors of floating-point numbers with at least one dimension (counters and masks keep theirs),
   * or by name or pattern. Nothing else is converted; a Tensor of stored I64 is i32 where it holds the same numbers.
   */
  readonly dtype?: string | { readonly [pattern: string]: string };
  /** Compare checksums while reading; on by default. */
  readonly verify?: boolean;
}

/** For `checkOptions`. */
export const SELECTION_OPTIONS = { names: "array", dtype: ["string", "object"], verify: "boolean" } as const;

/** The selected tensors, checked and converted as they are read. Throws MISSING for a pattern that matches nothing. */
export function selectTensors(source: TensorSource, selection: Selection, verification: Verifier): SelectedTensor[] {
  const { names, dtype, verify = true } = selection;
  const areTexts = names?.every((name) => typeof name === "string") ?? true;
  check(areTexts, "BAD_ARGUMENT", "names", () => `must be strings, got ${JSON.stringify(names)}.`);
  refuseUnreadable(source, names);
  for (const pattern of [...(names ?? []), ...(typeof dtype === "object" ? Object.keys(dtype) : [])]) {
    if ([...source.tensors.keys()].some((name) => matchesPattern(pattern, name))) continue;
    const have = [...source.tensors.keys()].slice(0, 8).join(", ");
    throw new OptError(
      "MISSING",
      source.path,
      `it holds no tensor ${JSON.stringify(pattern)}.`,
      `It holds ${have || "none"}.`,
    );
  }
  const meant = [...source.tensors.values()].filter(
    ({ name }) => names?.some((pattern) => matchesPattern(pattern, name)) ?? true,
  );
  return meant.map((tensor) => {
    const checked = verify ? redescribed(tensor, { verification }) : tensor;
    const wanted =
      typeof dtype === "string"
        ? dtype
        : Object.entries(dtype ?? {}).find(([pattern]) => matchesPattern(pattern, tensor.name))?.[1];
    if (wanted === undefined) return checked;
    const target = storedDType(wanted, "dtype");
    // One dtype for all is meant for weights: a counter of 1001 steps is 1000 in bf16.
    const isMeant = typeof dtype !== "string" || (tensor.shape.length > 0 && isFloating(tensor.dtype));
    return isMeant ? castTensor(checked, target) : checked;
  });
}

/** Tensors that nobody asked for may be of any element type; one that is asked for must be readable. */
function refuseUnreadable({ path, unreadable = new Map() }: TensorSource, names: readonly string[] | undefined): void {
  const asked = [...unreadable].filter(([name]) => names?.some((pattern) => matchesPattern(pattern, name)) ?? true);
  check(
    asked.length === 0,
    "UNSUPPORTED",
    path,
    () => {
      const more = asked.length > 1 ? `, and ${asked.length - 1} more cannot be read either` : "";
      return `${JSON.stringify(asked[0]![0])} cannot be read: ${asked[0]![1]}${more}.`;
    },
    "Ask for the others by names, or leave these out (exclude).",
  );
}

/** How ops learn of tensors that stand for each sample of a batch, which `vmap` makes: it knows the rules, and ops only ask. */
import { shared } from "../host/shared";

type Op = (...given: never[]) => unknown;

interface Batching {
  /** Runs an op for every sample at once. Undefined where none of what it is given is a batch. */
  over: ((op: Op, given: readonly unknown[]) => unknown) | null;
}

export const batching: Batching = /* @__PURE__ */ shared("vmap", () => ({ over: null as Batching["over"] }));

/** The results of an op over samples; undefined outside of `vmap`, and where it is given none. */
export function overSamples<Given extends readonly unknown[], Result>(
  op: (...given: Given) => Result,
  ...given: Given
): Result | undefined {
  return batching.over === null ? undefined : (batching.over(op as Op, given) as Result | undefined);
}

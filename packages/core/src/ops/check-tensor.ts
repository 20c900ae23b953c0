/** Operands are tensors: what else arrives from JavaScript is refused by name. */

import { isTensor } from "../device/scope";
import { check } from "../errors/errors";
import { show } from "../errors/show";
import type { Tensor } from "../tensor/tensor";

/** Refuses what is no tensor, of whichever copy of core, or a disposed one. @throws OptError BAD_ARGUMENT, DISPOSED */
export function checkTensor(where: string, value: unknown, name = "x"): asserts value is Tensor {
  const found = typeof value === "object" && value !== null && isTensor in value;
  check(
    found,
    "BAD_ARGUMENT",
    where,
    () => `${name} must be a Tensor, got ${show(value)}.`,
    "Make one with tensor(data).",
  );
  (value as Tensor).checkAlive(); // before an op allocates what it would leave behind
}

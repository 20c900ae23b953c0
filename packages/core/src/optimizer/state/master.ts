/** Master weights: the float32 copies in which 16-bit parameters are stepped. */

import { asFound } from "../../device/host-code";
import { tidy } from "../../device/scope";
import { cast } from "../../ops";
import { launchMap } from "../../ops/map";
import { Expression } from "../../rule/expression";
import { type Program, trace } from "../../rule/program";
import { abs, add, div, less, maximum, minimum, sub, where } from "../../rule/symbols";
import { noGrad } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";
import { MASTER, type Slot } from "./state";

export function hasMaster({ state }: Slot): boolean {
  return state?.tensors.has(MASTER) === true;
}

/** True if the master weights, rounded, are the parameter. While it holds lent contents (averages), they need not be. */
export function isInSync({ param, state }: Slot): boolean {
  return param.storage.isLent || state!.masterVersion === param.storage.version;
}

/** A step has just written both. */
export function markInSync({ param, state }: Slot): void {
  state!.masterVersion = param.storage.version;
}

/** Brings master weights to parameters that were overwritten since the last step. */
export function syncMasters(slots: readonly Slot[]): void {
  for (const slot of slots) {
    if (isInSync(slot)) continue;
    asFound(slot.param, () => follow(slot));
    markInSync(slot);
  }
}

/** 1 for negative numbers and -0: zeros of two signs are equal, and must not be taken for the same. */
const sign = (x: Expression) => where(less(div(1, x), 0), 1, 0);

/** Infinities become numbers beyond 16 bits, which can be compared. NaN stays. */
const finite = (x: Expression) => maximum(minimum(x, 3.4e38), -3.4e38);

/** `difference == 0 ? master : value`. A difference of NaN selects the value. */
function followProgram(): Program {
  const [master, rounded, value] = [0, 1, 2].map((slot) => new Expression("buffer", [], slot)) as [
    Expression,
    Expression,
    Expression,
  ];
  const distance = add(abs(sub(finite(value), finite(rounded))), abs(sub(sign(value), sign(rounded))));
  const expression = where(less(0, distance), value, where(less(distance, 1), master, value));
  return trace(["master", "rounded", "value"], [], [{ slot: 0, expression }]);
}

const FOLLOW = /* @__PURE__ */ followProgram();

/**
 * Elements that round to the parameter stay as they are: unchanged ones lose no bits, and a saved copy and its parameter can be
 * loaded in either order.
 */
function follow({ param, state }: Slot): void {
  const master = state!.tensors.get(MASTER) as Tensor;
  noGrad(() =>
    tidy(() => {
      const rounded = cast(cast(master, param.dtype), "f32");
      launchMap(FOLLOW, "f32", [master, rounded, cast(param, "f32")], [], master.shape, master);
    }),
  );
}

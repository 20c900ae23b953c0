/** The float32 copy in which a 16-bit parameter is stepped. */

import { tidy } from "../../device/scope";
import { cast } from "../../ops";
import { launchMap } from "../../ops/map";
import { Expression } from "../../rule/expression";
import { type Program, trace } from "../../rule/program";
import { abs, add, div, less, max, min, select, sub } from "../../rule/symbols";
import { noGrad } from "../../tensor/tape";
import type { Tensor } from "../../tensor/tensor";

/** The same for numbers of one sign, of zeros, too, which are equal. */
const sign = (x: Expression) => select(less(div(1, x), 0), 1, 0);

/** Infinities become numbers that no 16 bits hold, which can be compared; NaN stays. */
const finite = (x: Expression) => max(min(x, 3.4e38), -3.4e38);

/** `difference == 0 ? master : value`; where the difference is NaN, one of them is: the value. */
function followProgram(): Program {
  const [master, rounded, value] = [0, 1, 2].map((slot) => new Expression("buffer", [], slot)) as [
    Expression,
    Expression,
    Expression,
  ];
  const distance = add(abs(sub(finite(value), finite(rounded))), abs(sub(sign(value), sign(rounded))));
  const expression = select(less(0, distance), value, select(less(distance, 1), master, value));
  return trace(["master", "rounded", "value"], [], [{ slot: 0, expression }]);
}

const FOLLOW = /* @__PURE__ */ followProgram();

/**
 * Brings the master copy to a parameter that was overwritten. Elements that it rounds to stay as they are:
 * a saved copy and its parameter can be loaded in either order, and what was not changed loses no bits.
 */
export function follow(master: Tensor, param: Tensor): void {
  noGrad(() =>
    tidy(() => {
      const rounded = cast(cast(master, param.dtype), "f32");
      launchMap(FOLLOW, "f32", [master, rounded, cast(param, "f32")], [], master.shape, master);
    }),
  );
}

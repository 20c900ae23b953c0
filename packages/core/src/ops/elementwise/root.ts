/** Roots whose gradient is 0 where they are 0, as norms and standard deviations have it. */

import type { Expression } from "../../rule/expression";
import { abs, div, less, mul, pow, sqrt, sub, where } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import type { ElementwiseDefinition } from "../definition";
import { zeroOrNaN } from "./conditions";
import { elementwise } from "./elementwise";
import { extended } from "./elementwise-table";

/** 0 where y, which is not negative, is 0, and NaN where it is NaN. */
const nonZero = (y: Expression, value: Expression) => where(less(0, y), value, y);

/** The same without a slope at 0, and 1 in place of y there: of what is not taken, no gradient may be NaN. */
const flatAtZero = (y: Expression, value: (y: Expression) => Expression) =>
  where(less(0, y), value(where(less(0, y), y, 1)), zeroOrNaN(y));

const SQUARE_ROOT: ElementwiseDefinition = {
  forward: sqrt,
  gradients: [(g, y) => nonZero(y, div(g, mul(2, y)))],
  recorded: [(g, y) => flatAtZero(y, (root) => div(g, mul(2, root)))],
  result: "integer",
};

const powerSlope = (g: Expression, x: Expression, p: Expression) => mul(g, mul(p, pow(x, sub(p, 1))));

const POWER: ElementwiseDefinition = {
  forward: pow,
  gradients: [(g, y, x, p) => nonZero(y, powerSlope(g, x!, p!)), null],
  recorded: [(g, _y, x, p) => flatAtZero(x!, (sum) => powerSlope(g, sum, p!)), null],
  result: "integer",
};

const POWER_OF_SIZE: ElementwiseDefinition = {
  forward: (x, p) => pow(abs(x!), p!),
  gradients: [
    (g, _y, x, p) => {
      const slope = powerSlope(g, abs(x!), p!);
      return where(less(x!, 0), mul(-1, slope), nonZero(x!, slope));
    },
    null,
  ],
  recorded: [
    (g, _y, x, p) => {
      const slope = flatAtZero(abs(x!), (size) => powerSlope(g, size, p!));
      return where(less(x!, 0), mul(-1, slope), slope);
    },
    null,
  ],
  result: "integer",
};

/** The square root. */
export const root = (x: Tensor): Tensor => elementwise(extended("root", SQUARE_ROOT), [x]);

/** sum^(1/p), of a sum of powers p. */
export const rootOf = (sum: Tensor, p: number): Tensor => elementwise(extended("rootOf", POWER), [sum, 1 / p]);

/** |x|^p, whose gradient is 0 at 0. */
export const powerOfSize = (x: Tensor, p: number): Tensor =>
  elementwise(extended("powerOfSize", POWER_OF_SIZE), [x, p]);

/** The step of every elimination. */

import { mul, sub } from "../../rule/symbols";
import type { Tensor } from "../../tensor/tensor";
import type { ElementwiseDefinition } from "../definition";
import { elementwise } from "../elementwise/elementwise";
import { extended } from "../elementwise/elementwise-table";

const LESS_PRODUCT: ElementwiseDefinition = {
  forward: (x, a, b) => sub(x!, mul(a!, b!)),
  gradients: [null, null, null],
  result: "integer",
};

/** x - a b, elementwise and broadcast, without a gradient. */
export const lessProduct = (x: Tensor, a: Tensor, b: Tensor): Tensor =>
  elementwise(extended("lessProduct", LESS_PRODUCT), [x, a, b]);

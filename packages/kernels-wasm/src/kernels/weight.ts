/** What a number counts for in a sum that the largest of them leads: its exponential. */
import type { Value } from "../assembler";
import { emitDefinition, emitFunction } from "../emit/functions";
import type { Target } from "../kernel";
import type { Row } from "./row";

type Vector = Value<"v128">;

/** exp(x) of x up to 80, in the row's own type: core's `weight` in float32, JavaScript's exp in float64. */
export function emitWeight({ module, f, float }: Row, target: Target): (x: Vector) => Vector {
  const write =
    float.type === "f32" ? emitDefinition(module, "weight", target) : emitFunction(module, "exp", "f64", target);
  return write(f);
}

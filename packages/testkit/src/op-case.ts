/** A differentiable op on small inputs. */
import type { Shape, Tensor } from "@opt/core";

export interface OpCase {
  readonly name: string;
  readonly shapes: readonly Shape[];
  /** Inputs are in 0.5 .. 2.5, all different: away from the kinks of max and abs and the pole of log. */
  readonly domain?: "positive";
  /** The host computes it: UNSUPPORTED where the device can't be read without waiting. */
  readonly isOfHost?: boolean;
  run(...inputs: Tensor[]): Tensor;
}

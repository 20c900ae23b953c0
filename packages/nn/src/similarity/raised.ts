import { clamp, type Tensor } from "@opt/core";

/** At least `least`, with a gradient as if nothing had been raised: PyTorch raises such divisors in place. */
export function raised(x: Tensor, least: number): Tensor {
  return x.add(clamp(x, least).sub(x).detach());
}

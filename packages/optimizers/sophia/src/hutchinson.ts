/** Hutchinson's estimate of the Hessian's diagonal. */
import { checkOptions, type Generator, grad, mul, randint, type Tensor } from "@opt/core";

export interface HutchinsonOptions {
  /** Draws the signs. Default: the default generator. */
  readonly generator?: Generator;
}

/**
 * Adds an estimate of the Hessian's diagonal to the gradient of each parameter, in the place of `loss.backward()`: v * (H v), where v has
 * random signs. Its mean is the diagonal. The loss must be computed of ops that have second derivatives.
 * A parameter on which the slopes do not depend gets no gradient, or zeros.
 *
 * @throws OptError NO_GRADIENT for parameters or a loss that need none; further as `backward`
 * @example
 * import { Generator, parameter } from "@opt/core";
 * import { hutchinson } from "@opt/sophia";
 * const w = parameter([1, 2]);
 * hutchinson(w.pow(3).sum(), [w], { generator: new Generator(0) });
 * console.log(w.grad.tolist()); // [6, 12]
 */
export function hutchinson(loss: Tensor, params: Iterable<Tensor>, options: HutchinsonOptions = {}): void {
  checkOptions("hutchinson", options, { generator: "object" });
  const inputs = [...params];
  const slopes = grad(loss, inputs, { createGraph: true, allowUnused: true });
  const probed = inputs.flatMap((param, i) =>
    slopes[i]?.requiresGrad ? [{ param, slope: slopes[i], signs: signsLike(param, options) }] : [],
  );
  if (probed.length === 0) return;
  const along = sumOf(probed.map(({ slope, signs }) => mul(slope, signs)));
  const leaves = probed.map(({ param }) => param);
  const products = grad(along, leaves, { allowUnused: true });
  const estimated = probed.flatMap(({ param, signs }, i) =>
    products[i] ? [mul(param, mul(products[i], signs).detach())] : [],
  );
  // The gradients of this sum are the estimates. So whatever listens to backward hears of them.
  if (estimated.length > 0) sumOf(estimated).backward();
}

const sumOf = (list: readonly Tensor[]): Tensor => list.map((x) => x.sum()).reduce((sum, x) => sum.add(x));

/** 1 or -1 for each element. */
function signsLike({ shape, dtype, device }: Tensor, { generator }: HutchinsonOptions): Tensor {
  const drawn = randint(2, shape, { dtype: "i32", device: device.name, ...(generator && { generator }) });
  return drawn.to(dtype).mul(2).sub(1);
}

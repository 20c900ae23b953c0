/** Buffers that say whether they are part of the state. */
import { check, checkOptions, checkTensor, type Tensor } from "@opt/core";

/** By which the choice is known, of whichever copy of this package. */
const mark: unique symbol = Symbol.for("@opt/nn.persistent");

/**
 * Marks a tensor that a module holds without training it: a mask, positions, running statistics. Every tensor in a property that requires
 * no gradient is a buffer; with `persistent: false` it is left out of `stateDict()`, and still moves with `module.to()`. As PyTorch's
 * `nn.Buffer` and `register_buffer`.
 *
 * @param options `persistent`: part of the state, the default
 * @returns the tensor
 * @throws OptError BAD_ARGUMENT for what is no tensor, and for one that requires a gradient
 * @example
 * class Causal extends Module {
 *   mask = buffer(tril(ones([8, 8])), { persistent: false });
 *   forward(x: Tensor): Tensor {
 *     return x.mul(this.mask);
 *   }
 * }
 */
export function buffer(tensor: Tensor, options: { readonly persistent?: boolean } = {}): Tensor {
  checkTensor("buffer", tensor);
  checkOptions("buffer", options, { persistent: "boolean" });
  const advice = "Put the parameter into a property, or pass its detach().";
  check(!tensor.requiresGrad, "BAD_ARGUMENT", "buffer", () => "a buffer must not require a gradient.", advice);
  return markPersistent(tensor, options.persistent ?? true);
}

/** What `buffer` said of it; undefined where it was not asked. */
export function isPersistent(tensor: Tensor): boolean | undefined {
  return (tensor as { [mark]?: boolean })[mark];
}

export function markPersistent(tensor: Tensor, persistent: boolean): Tensor {
  return Object.defineProperty(tensor, mark, { value: persistent, configurable: true });
}

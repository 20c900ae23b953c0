/** Modifications: options of every optimizer that change its gradients or its update, whatever its algorithm. */

/** Where the weight decay goes: added to the gradient, or taken off the parameter. */
export type Decay = "l2" | "decoupled" | "cautious" | "independent";

/** Modifications of an optimizer. They go with each other, and a state dict says which it was made with. */
export interface ModificationOptions {
  /**
   * Elements move only where their update and the gradient agree. Those that move go further, by 1 / their share:
   * u = u * (u g > 0) / max(mean(u g > 0), 1e-3), where p -= u. Source: Liang et al., "Cautious Optimizers" (2024). Default false.
   */
  cautious?: boolean;
  /**
   * What `weightDecay` does. "l2": grad += weightDecay * p. "decoupled": p -= lr * weightDecay * p. "cautious": the same, where the update and p
   * have one sign or one is 0 (Chen et al., "Cautious Weight Decay", 2025). "independent": p -= weightDecay * p * lr / the group's first lr
   * (Loshchilov & Hutter, 2019). Default: as the optimizer does.
   */
  decay?: Decay | null;
  /**
   * Variance reduction: the gradient is c = g + gamma * beta1 / (1 - beta1) * (g - last g), scaled to a norm of at most 1. beta1 is `betas[0]`, or
   * `momentum`. The last gradient is state, `last_grad`, at first 0. Source: Yuan et al., "MARS" (2024), with gamma 0.025. Default null.
   */
  mars?: { readonly gamma: number } | null;
  /**
   * Matrices, and tensors of more dimensions, keep the norm R of their first value, and move by lr * R: p = R (p - lr R u / |u|) / |p - lr R u / |u||.
   * Zeros step as without it, and R is the norm of what they become. R is state, `radius`. Source: Wen et al., "Hyperball Optimization" (2026). Default false.
   */
  hyperball?: boolean;
  /**
   * Gradients of matrices, and tensors of more dimensions, lose the mean of each of their rows (all but the first dimension).
   * Source: Yong et al., "Gradient Centralization" (2020). Default false.
   */
  centralize?: boolean;
}

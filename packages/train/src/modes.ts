/** Training and evaluation modes, layer by layer: a frozen batch norm stays in evaluation mode. */
import type { Module } from "@opt/nn";

/** Notes the mode of each layer. Call what it returns to put all of them back. */
export function modesOf(module: Module): () => void {
  const modes = module.modules().map((layer) => [layer, layer.training] as const);
  return () => {
    for (const [layer, training] of modes) layer.training = training;
  };
}

/** Runs `body` with all layers in evaluation mode, then puts each layer back in its own mode, also if `body` throws or rejects. */
export function evaluating<Result>(module: Module, body: () => Result): Result {
  const restore = modesOf(module);
  module.eval();
  let isLater = false;
  try {
    const result = body();
    isLater = result instanceof Promise;
    return isLater ? ((result as Promise<unknown>).finally(restore) as Result) : result;
  } finally {
    if (!isLater) restore();
  }
}

/** Optimizers and norms of parts: what would need whole parameters, and a norm that gathers whole gradients. */
import { check, concat, full, noGrad, norms, type Tensor, tidy } from "@opt/core";
import type { Shard, Unit } from "./unit";

const WHERE = "FullyShardedDataParallel";

/** @throws OptError UNSUPPORTED for what needs whole parameters */
export function checkElementwise(
  name: string,
  groups: readonly { readonly clip?: { readonly norm?: number } | null }[],
  isClipped: boolean,
  isStaged = false,
): void {
  check(
    !isStaged,
    "UNSUPPORTED",
    WHERE,
    () => `the optimizer needs whole parameters, got a part of ${name}.`,
    "Muon, Lamb and Adafactor train with DataParallel.",
  );
  const limits = isClipped || groups.some(({ clip }) => clip?.norm !== undefined);
  check(
    !limits,
    "UNSUPPORTED",
    WHERE,
    () => `a norm needs whole gradients, got a part of ${name}.`,
    "await parallel.clipGradNorm(maxNorm) after sync(); by value: clip: { value }.",
  );
}

/** Scales the gradients of parts by the norm of all whole ones. @param shards in the order of the model's parameters. @returns the norm before */
export function clipByNorm(
  units: readonly Unit[],
  shards: readonly Shard[],
  maxNorm: number,
  normType: number,
): number {
  return noGrad(() =>
    tidy(() => {
      const found = new Map(units.flatMap((unit) => normsOf(unit, normType)));
      const each = shards.flatMap((shard) => found.get(shard) ?? []);
      if (each.length === 0) return 0;
      const total = each.length === 1 ? each[0]! : norms([concat(each)], normType);
      const factor = full([1], maxNorm, { device: total.device, dtype: total.dtype }).div(total.add(1e-6)).minimum(1);
      for (const { part } of shards) {
        const { grad } = part;
        if (grad !== null) grad.set(grad.mul(factor.to(grad.dtype === "f64" ? "f64" : "f32")).to(grad.dtype));
      }
      return total.dataSync()[0]!;
    }),
  );
}

function normsOf(unit: Unit, order: number): [Shard, Tensor][] {
  const gradients = [...unit.gatherGradients()];
  if (gradients.length === 0) return [];
  const each = norms(
    gradients.map(([, grad]) => grad),
    order,
  );
  for (const [, grad] of gradients) grad.dispose();
  return gradients.map(([shard], i) => [shard, each.slice(i, i + 1)]);
}

/** Muon's per-step numbers, in float64. */
import { type Arithmetic, type Counters, Tensor } from "@opt/core";
import type { MuonOptions } from "./options";

export function advanceMuon({ step }: Counters): Counters {
  return { step: step + 1 };
}

/** PyTorch counts no steps: where there is a momentum, there was a first one. */
export function countedMuon({ step, momentum_buffer }: Readonly<Record<string, unknown>>): Counters {
  return { step: step === undefined ? Number(momentum_buffer instanceof Tensor) : (step as number) };
}

export function muonScalars(
  { lr, momentum, weightDecay }: MuonOptions,
  _: Counters,
  { sub, mul, neg }: Arithmetic,
): Record<string, number> {
  return { weight: sub(1, momentum), momentum, keep: sub(1, mul(lr, weightDecay)), negLr: neg(lr) };
}

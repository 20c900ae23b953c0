/** The sweep of layers and losses: rare arguments of each, as digests of PyTorch's answers in `goldens/sweep.json`. */
import type { Sweep, TorchCall } from "@opt/testkit";
import { activationCalls } from "./calls/activations";
import { commonLossCalls } from "./calls/common-losses";
import { ctcCalls } from "./calls/ctc";
import { embeddingCalls } from "./calls/embeddings";
import { lossCalls } from "./calls/losses";
import { normCalls } from "./calls/norms";
import { rareAttention } from "./calls/rare-attention";
import { rareLosses } from "./calls/rare-losses";
import { rareNorms } from "./calls/rare-norms";
import { rareSequences } from "./calls/rare-sequences";
import { rareWindows } from "./calls/rare-windows";
import { transformerCalls } from "./calls/transformers";

/** The same calls each time. */
export function layerSweep(): Sweep {
  const usual = [
    ...activationCalls(6),
    ...commonLossCalls(12),
    ...ctcCalls(20),
    ...embeddingCalls(24),
    ...lossCalls(10),
    ...normCalls(20),
    ...transformerCalls(6),
  ];
  return {
    ...byFunction(usual),
    ...rareAttention(20),
    ...rareWindows(16),
    ...rareLosses(15),
    ...rareSequences(15),
    ...rareNorms(12),
    "transformers, of a large eps": transformerCalls(3, { seed: 1601, eps: [0.4, 3] }),
  };
}

/** By the first name in each call's. */
function byFunction(calls: readonly TorchCall[]): Sweep {
  const groups: Record<string, TorchCall[]> = {};
  for (const call of calls) {
    const name = /^\d+: (?:F\.)?(\w+)/.exec(call.name)![1]!;
    groups[name] = [...(groups[name] ?? []), call];
  }
  return groups;
}

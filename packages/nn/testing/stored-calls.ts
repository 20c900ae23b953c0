/** Calls of layers and losses in random configurations, a list a subject: the first ones are stored with PyTorch's answers in `goldens/`. */
import type { TorchCall } from "@opt/testkit";
import { activationCalls, activationsAtEdges } from "./calls/activations";
import { attentionCalls } from "./calls/attention";
import { commonLossCalls } from "./calls/common-losses";
import { ctcCalls } from "./calls/ctc";
import { embeddingCalls } from "./calls/embeddings";
import { everyLayerCalls, LAYER_KINDS } from "./calls/every-layer";
import { functionCalls } from "./calls/functions";
import { lossCalls, lossesAtEdges } from "./calls/losses";
import { normCalls } from "./calls/norms";
import { recurrentCalls } from "./calls/recurrent";
import { transformerCalls } from "./calls/transformers";
import { unevenPools, windowCalls } from "./calls/windows";

type Subjects = Readonly<Record<string, readonly TorchCall[]>>;

export const STORED: Subjects = {
  recurrent: recurrentCalls(12),
  attention: attentionCalls(6),
  norm: normCalls(6),
  windows: [...windowCalls(2), ...unevenPools(4)],
  activations: [...activationCalls(2), ...activationsAtEdges],
  losses: [...lossCalls(2), ...lossesAtEdges, ...ctcCalls(4), ...commonLossCalls(4)],
  transformers: transformerCalls(4),
  embeddings: embeddingCalls(8),
  functions: functionCalls(12),
  layers: everyLayerCalls(2 * LAYER_KINDS(), 1),
};

/** So many cases of all layers are asked, from this seed: others find what these do not. */
const { OPT_LAYER_CASES = "400", OPT_LAYER_SEED = "1" } = process.env;

/** What PyTorch is asked while the tests run. */
export const LIVE = (): Subjects => ({
  recurrent: recurrentCalls(600),
  attention: attentionCalls(200),
  norm: normCalls(200),
  windows: [...windowCalls(200), ...unevenPools(200)],
  activations: [...activationCalls(200), ...activationsAtEdges],
  losses: [...lossCalls(200), ...lossesAtEdges, ...ctcCalls(200), ...commonLossCalls(200)],
  transformers: transformerCalls(200),
  embeddings: embeddingCalls(200),
  functions: functionCalls(200),
  layers: everyLayerCalls(Number(OPT_LAYER_CASES), Number(OPT_LAYER_SEED)),
});

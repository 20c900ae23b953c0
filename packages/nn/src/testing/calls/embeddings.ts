/** Calls of embeddings whose answers are stored. */
import type { CallInput, TorchCall } from "@opt/testkit";
import { Embedding, EmbeddingBag } from "../../index";
import { layerCall } from "../layer-call";
import type { RandomInputs } from "../random-inputs";

export function embeddings(make: RandomInputs): TorchCall[] {
  const indices: CallInput = { values: [0, 2, 2, 3, 1, 1, 0, 3], shape: [2, 4], dtype: "i32" };
  const list: CallInput = { ...indices, shape: [8] };
  const offsets: CallInput = { values: [0, 3, 3, 4], shape: [4], dtype: "i32" };
  // PyTorch's bags have no second gradients.
  const shared = { dtype: "f64" } as const;
  return [
    layerCall(make, {
      name: "Embedding with padding",
      torch: "nn.Embedding(4, 3, padding_idx=2)",
      make: (place) => new Embedding(4, 3, { paddingIdx: 2, ...place }),
      inputs: [indices],
      results: "[y * y]",
      forward: (call, x) => call(x!).pow(2),
      second: true,
      ...shared,
    }),
    ...(["sum", "mean", "max"] as const).flatMap((mode) => [
      layerCall(make, {
        name: `EmbeddingBag, ${mode}, with padding`,
        torch: `nn.EmbeddingBag(4, 3, mode="${mode}", padding_idx=2)`,
        make: (place) => new EmbeddingBag(4, 3, { mode, paddingIdx: 2, ...place }),
        inputs: [indices],
        results: "[y * y]",
        forward: (call, x) => call(x!).pow(2),
        ...shared,
      }),
      layerCall(make, {
        name: `EmbeddingBag, ${mode}, with offsets`,
        torch: `nn.EmbeddingBag(4, 3, mode="${mode}")`,
        make: (place) => new EmbeddingBag(4, 3, { mode, ...place }),
        inputs: [list, offsets],
        args: "a, b",
        results: "[y * y]",
        forward: (call, x, offsets) => call(x!, { offsets: offsets! }).pow(2),
        ...shared,
      }),
    ]),
    layerCall(make, {
      name: "EmbeddingBag with factors",
      torch: 'nn.EmbeddingBag(4, 3, mode="sum")',
      make: (place) => new EmbeddingBag(4, 3, { mode: "sum", ...place }),
      inputs: [list, offsets, make.numbers([8], "f64")],
      args: "a, b, c",
      forward: (call, x, offsets, perSampleWeights) =>
        call(x!, { offsets: offsets!, perSampleWeights: perSampleWeights! }),
      ...shared,
    }),
  ];
}

// Embeddings and bags in random configurations, in f32 and f64, against PyTorch: values and gradients, of Embedding second ones.
import type { CallInput, TorchCall } from "@opt/testkit";
import { Embedding, EmbeddingBag } from "../../index";
import { layerCall } from "../../testing/layer-call";
import { liveSuite } from "../../testing/live-suite";
import { RandomInputs } from "../../testing/random-inputs";

const make = new RandomInputs(16);
const calls: TorchCall[] = [];
const python = (value: unknown) =>
  value === null ? "None" : value === true ? "True" : value === false ? "False" : JSON.stringify(value);

for (let i = 0; i < 200; i++) {
  const dtype = i % 2 === 0 ? "f32" : "f64";
  const [count, width] = [make.between(1, 5), make.between(1, 4)];
  const paddingIdx = make.flip() ? make.between(-count, count - 1) : null;
  embedding(i, dtype, count, width, paddingIdx);
  bag(i, dtype, count, width, paddingIdx);
}

function embedding(i: number, dtype: "f32" | "f64", count: number, width: number, paddingIdx: number | null): void {
  const shape = Array.from({ length: make.between(0, 3) }, () => make.between(1, 3));
  calls.push(
    layerCall(make, {
      name: `${i}: Embedding(${count}, ${width}, padding_idx=${python(paddingIdx)}) [${shape}]`,
      torch: `nn.Embedding(${count}, ${width}, padding_idx=${python(paddingIdx)})`,
      make: (place) => new Embedding(count, width, { paddingIdx, ...place }),
      dtype,
      inputs: [make.whole(shape, count)],
      results: "[y * y]",
      forward: (call, x) => call(x!).pow(2),
      second: dtype === "f64",
    }),
  );
}

function bag(i: number, dtype: "f32" | "f64", count: number, width: number, paddingIdx: number | null): void {
  const mode = make.random.pick(["sum", "mean", "max"] as const);
  const [isList, includeLastOffset] = [make.flip(), make.flip()];
  const isWeighted = mode === "sum" && make.flip();
  const places = make.between(1, 12);
  const starts = [
    0,
    ...Array.from({ length: make.between(0, 4) }, () => make.between(0, places)).sort((a, b) => a - b),
  ];
  const bounds = includeLastOffset ? [...starts, places] : starts;
  const shape = isList ? [places] : [make.between(1, 4), make.between(1, 4)];
  const offsets: CallInput = { values: bounds, shape: [bounds.length], dtype: "i32" };
  const settings = `mode="${mode}", padding_idx=${python(paddingIdx)}, include_last_offset=${python(isList && includeLastOffset)}`;
  calls.push(
    layerCall(make, {
      name: `${i}: EmbeddingBag(${count}, ${width}, ${settings}) [${shape}]${isList ? `, offsets ${bounds}` : ""}${isWeighted ? ", with factors" : ""}`,
      torch: `nn.EmbeddingBag(${count}, ${width}, ${settings})`,
      make: (place) =>
        new EmbeddingBag(count, width, { mode, paddingIdx, includeLastOffset: isList && includeLastOffset, ...place }),
      dtype,
      inputs: [make.whole(shape, count), offsets, make.numbers(shape, dtype)],
      args: `a, ${isList ? "b" : "None"}, ${isWeighted ? "c" : "None"}`,
      results: "[y * y]",
      forward: (call, x, offsets, perSampleWeights) =>
        call(x!, {
          ...(isList && { offsets: offsets! }),
          ...(isWeighted && { perSampleWeights: perSampleWeights! }),
        }).pow(2),
    }),
  );
}

liveSuite(calls);

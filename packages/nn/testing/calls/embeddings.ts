/** Calls of embeddings and bags, of which PyTorch knows the values and the gradients, of Embedding second ones. */
import type { CallInput, TorchCall } from "@opt/testkit";
import { Embedding, EmbeddingBag } from "../../src/index";
import { layerCall } from "../layer-call";
import { python, RandomInputs } from "../random-inputs";

/** Both in `count` random configurations. */
export function embeddingCalls(count: number): TorchCall[] {
  const make = new RandomInputs(16);
  return Array.from({ length: count }, (_, i) => {
    const dtype = i % 2 === 0 ? "f32" : "f64";
    const [rows, width] = [make.between(1, 5), make.between(1, 4)];
    const paddingIdx = make.flip() ? make.between(-rows, rows - 1) : null;
    const table = { make, i, dtype, rows, width, paddingIdx } as const;
    return [embedding(table), bag(table)];
  }).flat();
}

interface Table {
  readonly make: RandomInputs;
  readonly i: number;
  readonly dtype: "f32" | "f64";
  readonly rows: number;
  readonly width: number;
  readonly paddingIdx: number | null;
}

function embedding({ make, i, dtype, rows, width, paddingIdx }: Table): TorchCall {
  const shape = Array.from({ length: make.between(0, 3) }, () => make.between(1, 3));
  return layerCall(make, {
    name: `${i}: Embedding(${rows}, ${width}, padding_idx=${python(paddingIdx)}) [${shape}]`,
    torch: `nn.Embedding(${rows}, ${width}, padding_idx=${python(paddingIdx)})`,
    make: (place) => new Embedding(rows, width, { paddingIdx, ...place }),
    dtype,
    inputs: [make.whole(shape, rows)],
    results: "[y * y]",
    forward: (call, x) => call(x!).pow(2),
    second: dtype === "f64",
  });
}

function bag({ make, i, dtype, rows, width, paddingIdx }: Table): TorchCall {
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
  return layerCall(make, {
    name: `${i}: EmbeddingBag(${rows}, ${width}, ${settings}) [${shape}]${isList ? `, offsets ${bounds}` : ""}${isWeighted ? ", with factors" : ""}`,
    torch: `nn.EmbeddingBag(${rows}, ${width}, ${settings})`,
    make: (place) =>
      new EmbeddingBag(rows, width, { mode, paddingIdx, includeLastOffset: isList && includeLastOffset, ...place }),
    dtype,
    inputs: [make.whole(shape, rows), offsets, make.numbers(shape, dtype)],
    args: `a, ${isList ? "b" : "None"}, ${isWeighted ? "c" : "None"}`,
    results: "[y * y]",
    forward: (call, x, offsets, perSampleWeights) =>
      call(x!, {
        ...(isList && { offsets: offsets! }),
        ...(isWeighted && { perSampleWeights: perSampleWeights! }),
      }).pow(2),
  });
}

/** What is served has the bits of what was trained: logits of a sequence have the same words however they are computed. */
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { compile, type Device, Generator, noGrad, randn, type Tensor, tensor, tidy } from "@opt/core";
import { EXACT_DEVICES, eachDevice, Random } from "@opt/testkit";
import { expect, it } from "vitest";
import { goldens, tiny } from "../testing/tiny";
import { KeyValueCache, type LanguageModel, languageModel, lora, merge, type Slots } from "./index";

const VOCABULARY = 61;

class Serving {
  readonly #compiled = compile((tokens: Tensor, at: number | Tensor, cache: Slots) =>
    noGrad(() => this.model.forward(tokens, { at, cache })),
  );

  constructor(
    readonly model: LanguageModel,
    readonly device: Device,
  ) {}

  #tokens(rows: readonly (readonly number[])[], length: number): Tensor {
    const padded = rows.map((row) => Array.from({ length }, (_, i) => row[i] ?? 0));
    return tensor(padded, { dtype: "i32", device: this.device });
  }

  readonly #trained = compile((tokens: Tensor) => this.model.forward(tokens));

  /** As in training: the whole batch, filled up on the right, with a tape. */
  whole(rows: readonly (readonly number[])[], isCompiled = false): Float32Array[] {
    const length = Math.max(...rows.map((row) => row.length));
    const run = isCompiled ? this.#trained : (tokens: Tensor) => this.model.forward(tokens);
    const data = tidy(() => run(this.#tokens(rows, length)).dataSync<Float32Array>());
    return rows.map((row, i) => data.slice(i * length * VOCABULARY, (i * length + row.length) * VOCABULARY));
  }

  /** By a cache: the first tokens in pieces, the others one by one, each row at its own position. */
  cached(rows: readonly (readonly number[])[], piece: number, isCompiled: boolean): Float32Array[] {
    const cache = new KeyValueCache(this.model, {
      batch: rows.length,
      capacity: Math.max(128, ...rows.map(({ length }) => length + piece)),
    });
    const slots = { capacity: cache.capacity, layers: cache.layers };
    const pass = (tokens: Tensor, at: number | Tensor): Float32Array =>
      tidy(() =>
        (isCompiled && (at === 0 || typeof at !== "number")
          ? this.#compiled(tokens, at, slots)
          : noGrad(() => this.model.forward(tokens, { at, cache }))
        ).dataSync(),
      );
    const heads = rows.map(({ length }) => Math.max(1, Math.floor(length / 2)));
    const results = rows.map(({ length }) => new Float32Array(length * VOCABULARY));
    for (let at = 0; at < Math.max(...heads); at += piece) {
      const data = tidy(() =>
        pass(
          this.#tokens(
            rows.map((row, i) => row.slice(at, Math.min(at + piece, heads[i]!))),
            piece,
          ),
          at,
        ),
      );
      for (const [i, head] of heads.entries()) {
        const count = Math.min(piece, head - at);
        if (count > 0)
          results[i]!.set(data.subarray(i * piece * VOCABULARY, (i * piece + count) * VOCABULARY), at * VOCABULARY);
      }
    }
    for (let made = 0; rows.some(({ length }, i) => heads[i]! + made < length); made++) {
      const places = rows.map(({ length }, i) => Math.min(heads[i]! + made, length - 1));
      const at = tensor(Int32Array.from(places), { device: this.device });
      const data = tidy(() =>
        pass(
          this.#tokens(
            rows.map((row, i) => [row[places[i]!]!]),
            1,
          ),
          at,
        ),
      );
      for (const [i, place] of places.entries())
        results[i]!.set(data.subarray(i * VOCABULARY, (i + 1) * VOCABULARY), place * VOCABULARY);
    }
    cache.dispose();
    return results;
  }
}

function differing(a: readonly Float32Array[], b: readonly Float32Array[]): number {
  const words = (rows: readonly Float32Array[]) => rows.flatMap((row) => [...new Uint32Array(row.slice().buffer)]);
  const [left, right] = [words(a), words(b)];
  expect(left.length).toBe(right.length);
  return left.filter((word, i) => word !== right[i]).length;
}

/** Each device serves every model and every shape, each model of another shape on every device. */
const SHAPES = [
  { batch: 1, piece: 1 },
  { batch: 3, piece: 5 },
  { batch: 16, piece: 64 },
  { batch: 2, piece: 17 },
  { batch: 9, piece: 4 },
];
const families = [...goldens.keys()].filter((name) => name !== "llama-dynamic");
const models = [...families, "adapted", "adapted by DoRA", "merged"];

async function served(name: string, device: Device): Promise<LanguageModel> {
  if (families.includes(name)) return tiny(name, device);
  const generator = new Generator(3);
  const targets = ["q_proj", "v_proj", "down_proj"];
  const model = lora(await tiny("llama3", device), { rank: 2, targets, dora: name.includes("DoRA"), generator });
  for (const [name, weight] of model.namedParameters({ trainable: true }))
    if (name.includes("lora_B")) weight.detach().set(randn(weight.shape, { generator, device })); // begins as 0
  return name === "merged" ? merge(model) : model;
}

await eachDevice((device) => {
  it.each(models)("%s: alone, in a batch, in pieces, cached, compiled", async (name) => {
    const serving = new Serving(await served(name, device), device);
    const index = models.indexOf(name);
    const random = new Random(index + 1);
    const { batch, piece } = SHAPES[(index + EXACT_DEVICES.indexOf(device.name)) % SHAPES.length]!;
    const rows = Array.from({ length: batch }, () =>
      Array.from({ length: 1 + random.below(40) }, () => random.below(VOCABULARY)),
    );
    const alone = rows.flatMap((row) => serving.whole([row]));
    const label = `batch ${batch}, pieces of ${piece}`;
    expect(differing(serving.whole(rows), alone), label).toBe(0);
    expect(differing(serving.whole(rows, true), alone), `${label}, compiled`).toBe(0);
    expect(differing(serving.cached(rows, piece, false), alone), `${label}, cached`).toBe(0);
    expect(differing(serving.cached(rows, piece, true), alone), `${label}, cached and compiled`).toBe(0);
  });

  // Products work on blocks of rows, and on what is left over.
  it.each(["llama3", "adapted", "adapted by DoRA"])("%s: 1 to 16 rows of one token", async (name) => {
    const model = await served(name, device);
    const all = Array.from({ length: 16 }, (_, i) => [3 * i]);
    const logits = (rows: number[][]) =>
      tidy(() => model.forward(tensor(rows, { dtype: "i32", device })).dataSync<Float32Array>());
    const expected = logits(all);
    for (let batch = 1; batch < 16; batch++) {
      const first = expected.slice(0, batch * VOCABULARY);
      expect(differing([logits(all.slice(0, batch))], [first]), `${batch} rows`).toBe(0);
    }
  });

  it("beyond one piece of a product", async () => {
    const { config } = goldens.get("gemma3")!;
    const model = languageModel(
      {
        ...config,
        max_position_embeddings: 2048,
        num_hidden_layers: 2,
        layer_types: undefined,
        sliding_window: 300,
        sliding_window_pattern: 2,
      },
      { device },
    );
    const serving = new Serving(model, device);
    const row = Array.from({ length: 600 }, (_, i) => (i * i + 3 * i) % VOCABULARY);
    const whole = serving.whole([row]);
    const part = row.slice(0, 530);
    const first = [whole[0]!.slice(0, 530 * VOCABULARY)];
    expect(differing(serving.whole([part]), first)).toBe(0);
    expect(differing(serving.cached([part.slice(0, 520)], 130, false), [first[0]!.slice(0, 520 * VOCABULARY)])).toBe(0);
  });
}, EXACT_DEVICES);

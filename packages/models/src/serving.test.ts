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

const cases = [...goldens.keys()].filter((name) => name !== "llama-dynamic");

await eachDevice((device) => {
  it.each(cases)("%s: alone, in batches, in pieces, cached, compiled", async (name) => {
    const serving = new Serving(await tiny(name, device), device);
    const random = new Random(cases.indexOf(name) + 1);
    for (const [batch, piece] of [
      [1, 1],
      [3, 5],
      [16, 64],
      [2, 17],
    ] as const) {
      const rows = Array.from({ length: batch }, () =>
        Array.from({ length: 1 + random.below(40) }, () => random.below(VOCABULARY)),
      );
      const alone = rows.flatMap((row) => serving.whole([row]));
      const label = `batch ${batch}, pieces of ${piece}`;
      expect(differing(serving.whole(rows), alone), label).toBe(0);
      expect(differing(serving.whole(rows, true), alone), `${label}, compiled`).toBe(0);
      expect(differing(serving.cached(rows, piece, false), alone), `${label}, cached`).toBe(0);
      expect(differing(serving.cached(rows, piece, true), alone), `${label}, cached and compiled`).toBe(0);
    }
  });

  it.each([
    ["adapted", false, false],
    ["adapted by DoRA", true, false],
    ["merged", false, true],
  ])("%s: batches of 1 to 16", async (_, dora, isMerged) => {
    const generator = new Generator(3);
    const targets = ["q_proj", "v_proj", "down_proj"];
    const model = lora(await tiny("llama3", device), { rank: 2, targets, dora, generator });
    for (const [name, weight] of model.namedParameters({ trainable: true }))
      if (name.includes("lora_B")) weight.detach().set(randn(weight.shape, { generator, device })); // begins as 0
    if (isMerged) merge(model);
    const serving = new Serving(model, device);
    const random = new Random(7);
    const all = Array.from({ length: 16 }, () =>
      Array.from({ length: 1 + random.below(30) }, () => random.below(VOCABULARY)),
    );
    const alone = all.map((row) => serving.whole([row])[0]!);
    for (let batch = 1; batch <= 16; batch++) {
      const [rows, expected] = [all.slice(-batch), alone.slice(-batch)];
      const piece = 1 + ((19 * (batch - 1)) % 64);
      const label = `batch ${batch}, pieces of ${piece}`;
      expect(differing(serving.whole(rows), expected), label).toBe(0);
      expect(differing(serving.cached(rows, piece, false), expected), `${label}, cached`).toBe(0);
      if (batch % 8 !== 1) continue;
      expect(differing(serving.whole(rows, true), expected), `${label}, compiled`).toBe(0);
      expect(differing(serving.cached(rows, piece, true), expected), `${label}, cached and compiled`).toBe(0);
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

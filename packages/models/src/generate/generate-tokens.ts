/** Tokens after prompts, one by one. */
import { checkOptions, checkValue, compile, Generator, gather, noGrad, type Tensor, tensor, tidy } from "@opt/core";
import { alignedKeys, KeyValueCache, type Slots } from "../attention/cache";
import { checkExtents } from "../check";
import type { LanguageModel } from "../decoder/language-model";
import { type ChoiceOptions, checkChoice, choose } from "./choose";

export interface GenerateTokensOptions extends ChoiceOptions {
  /** The most tokens of a row. Default 128. */
  readonly maxTokens?: number;
  /** Tokens that end a row; they are given out. Default none. */
  readonly ends?: readonly number[];
  /** Of the draws: row i draws with seed + i. Default 0. */
  readonly seed?: number;
  /** Compiles a pass for each length, in steps of powers of two. Default true. */
  readonly compile?: boolean;
}

/** For `checkOptions`. */
export const GENERATE_OPTIONS: Parameters<typeof checkOptions>[2] = {
  ...{ temperature: "number", topK: "number", topP: "number", repetitionPenalty: "number" },
  ...{ maxTokens: "number", ends: "any", seed: "number", compile: "boolean" },
};

type Step = (tokens: Tensor, at: number | Tensor, last: Tensor, cache: Slots) => Tensor;

const compiled = new WeakMap<LanguageModel, Step>();

/** Logits [rows, vocabulary] after the places `last` of all places together. */
function stepOf(model: LanguageModel, isCompiled: boolean): Step {
  const step: Step = (tokens, at, last, cache) =>
    tidy(() =>
      noGrad(() => {
        const hidden = model.hidden(tokens, { cache, at });
        return model.logits(gather(hidden.reshape([-1, model.config.width]), last));
      }),
    );
  if (!isCompiled) return step;
  const known = compiled.get(model) ?? compile(step);
  compiled.set(model, known);
  return known;
}

/** So many places that few lengths are compiled. */
function rounded(places: number): number {
  const power = 2 ** Math.ceil(Math.log2(places));
  return power <= 512 ? power : alignedKeys(places);
}

/**
 * The tokens after prompts, which may differ in length: at each step the next one of each row, or null where a row has ended. A row has the
 * tokens that it has alone. It ends at `maxTokens`, at one of `ends`, and where the model has no more positions.
 *
 * @throws OptError BAD_ARGUMENT for a prompt without tokens or with too many
 * @example
 * const json = { model_type: "gpt2", vocab_size: 50, n_positions: 16, n_embd: 8, n_layer: 1, n_head: 2 };
 * const model = languageModel(json, { generator: new Generator(1) });
 * for await (const [a, b] of generateTokens(model, [[3, 1, 4], [1]], { maxTokens: 3 })) console.log(a, b);
 */
export async function* generateTokens(
  model: LanguageModel,
  prompts: readonly (readonly number[])[],
  options: GenerateTokensOptions = {},
): AsyncGenerator<(number | null)[], void, undefined> {
  const where = "generateTokens";
  checkOptions(where, options, GENERATE_OPTIONS);
  checkChoice(where, options);
  const { maxTokens = 128, ends = [], seed = 0, compile: isCompiled = true } = options;
  checkValue(Array.isArray(ends) && ends.every(Number.isInteger), where, "ends", "a list of tokens", ends);
  checkExtents(where, { prompts: prompts.length, maxTokens });
  const { positions, vocabulary } = model.config;
  for (const { length } of prompts)
    checkValue(length >= 1 && length <= positions, where, "the tokens of a prompt", `1 to ${positions}`, length);
  const longest = Math.max(...prompts.map(({ length }) => length));
  const most = Math.min(longest + maxTokens, positions);
  const { device } = model;
  const batch = prompts.length;
  const cache = new KeyValueCache(model, { batch, capacity: Math.min(rounded(most), alignedKeys(positions)) });
  const step = stepOf(model, isCompiled);

  const indices = (values: readonly number[]) => tensor(Int32Array.from(values), { device });
  const logitsOf = async (width: number, rows: readonly (readonly number[])[], isFirst: boolean, places: number[]) => {
    const padded = rows.flatMap((row) => Array.from({ length: width }, (_, i) => row[i] ?? 0));
    const tokens = tidy(() => indices(padded).reshape([batch, width]));
    const last = indices(rows.map(({ length }, row) => row * width + length - 1));
    const at = isFirst ? 0 : indices(places);
    const logits = step(tokens, at, last, { capacity: cache.capacity, layers: cache.layers });
    const data = await logits.data<Float32Array>();
    for (const each of [tokens, last, at, logits]) if (typeof each !== "number") each.dispose();
    return data;
  };

  try {
    const begun = (i: number) => ({ isDone: false, generator: new Generator(seed + i) });
    const rows = prompts.map((prompt, i) => ({ tokens: [...prompt], ...begun(i) }));
    let fresh = prompts;
    for (let made = 0; made < maxTokens && rows.some(({ isDone }) => !isDone); made++) {
      const width = made === 0 ? Math.min(rounded(longest), positions) : 1;
      // A row that has ended stays at its last position while others go on.
      const places = rows.map(({ tokens }) => Math.min(tokens.length, positions) - 1);
      const logits = await logitsOf(width, fresh, made === 0, places);
      const next = rows.map((row, i) => {
        if (row.isDone) return null;
        const own = logits.subarray(i * vocabulary, (i + 1) * vocabulary);
        const token = choose(own, row.tokens, options, row.generator);
        row.tokens.push(token);
        row.isDone = ends.includes(token) || row.tokens.length > positions;
        return token;
      });
      yield next;
      fresh = next.map((token) => [token ?? 0]);
    }
  } finally {
    cache.dispose();
  }
}

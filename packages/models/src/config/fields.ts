/** The fields of a config.json. Each one that nobody reads must be known to change no number. */
import { checkValue, show } from "@opt/core";
import { unsupported } from "../check";

/** A config.json, as transformers writes it. */
export type ConfigJson = Readonly<Record<string, unknown>>;

/** Fields without an influence on logits: names of tokens, training, tasks, and options of transformers' own methods. */
const IDLE = new Set([
  ...["model_type", "architectures", "auto_map", "dtype", "torch_dtype", "transformers_version", "_name_or_path"],
  ...["bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "decoder_start_token_id", "n_ctx"],
  ...["attention_dropout", "attn_pdrop", "embd_pdrop", "resid_pdrop", "initializer_range", "use_cache"],
  ...["cache_implementation", "chunk_size_feed_forward", "return_dict", "is_encoder_decoder", "is_llama_config"],
  ...["output_attentions", "output_hidden_states", "id2label", "label2id", "problem_type", "task_specific_params"],
  ...["summary_type", "summary_use_proj", "summary_activation", "summary_proj_to_labels", "summary_first_dropout"],
  ...["reorder_and_upcast_attn", "_sliding_window_pattern", "rope_interleaved"],
]);

export class Fields {
  readonly #read = new Set<string>();

  constructor(
    private readonly json: ConfigJson,
    private readonly where = "config.json",
  ) {}

  /** The value of the first name that has one, null counting as none. */
  any(...names: readonly string[]): unknown {
    for (const name of names) this.#read.add(name);
    return names.map((name) => this.json[name]).find((value) => value !== undefined && value !== null);
  }

  number(name: string, otherwise?: number): number {
    const value = this.any(name) ?? otherwise;
    checkValue(Number.isFinite(value), this.where, name, "a number", value, "See the model's page.");
    return value as number;
  }

  boolean(name: string, otherwise: boolean): boolean {
    return (this.any(name) ?? otherwise) === true;
  }

  /** One of some texts. @throws OptError UNSUPPORTED */
  oneOf<T extends string>(name: string, known: readonly T[], otherwise?: T): T {
    const value = (this.any(name) ?? otherwise) as T;
    if (known.includes(value)) return value;
    return unsupported(this.where, `${name} must be one of ${known.join(", ")}, got ${show(value)}.`);
  }

  /** A field that must have one value, if it has any. @throws OptError UNSUPPORTED */
  fixed(name: string, only: unknown): void {
    const value = this.any(name);
    if (value !== undefined && value !== only)
      unsupported(this.where, `${name} must be ${show(only)}, got ${show(value)}.`);
  }

  /** @throws OptError UNSUPPORTED where a field is left that may change numbers */
  finish(): void {
    for (const [name, value] of Object.entries(this.json)) {
      const problem = `nothing here reads the field ${name}, got ${show(value)}.`;
      const isKnown = value === null || this.#read.has(name) || IDLE.has(name);
      if (!isKnown) unsupported(this.where, problem, "Remove the field if it changes no number.");
    }
  }
}

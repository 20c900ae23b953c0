/** A fine-tuning run, in Node and in a page: a base, adapters of low rank, a text, and a folder of checkpoints to go on from. */
import { AdamW } from "@opt/adam-amsgrad";
import { type FileSystem, memoryFileSystem } from "@opt/checkpoint";
import { check, Generator, type Tensor } from "@opt/core";
import { DataLoader } from "@opt/data";
import {
  causalLoss,
  fitsIn,
  fromPretrained,
  generate,
  type LanguageModel,
  lora,
  type MemoryPlan,
  type Quantization,
  saveAdapter,
  type Tokenizer,
  textDataset,
} from "@opt/models";
import { type Callback, checkpoints, evaluate, fit, type History } from "@opt/train";
import { CHARACTERS, characters } from "./characters";

export interface FineTuningOptions {
  /** Folder of the base, and where it is. */
  readonly base: string;
  readonly baseFiles?: FileSystem;
  readonly text: string;
  /** Of the run's checkpoints; it goes on from the newest one. */
  readonly folder: string;
  readonly files?: FileSystem;
  readonly epochs?: number;
  readonly rank?: number;
  readonly alpha?: number;
  readonly lr?: number;
  readonly batch?: number;
  /** Tokens of a sample. Default: the base's positions, at most 256. */
  readonly length?: number;
  readonly quantize?: Quantization;
  /** Bytes that a step may take. */
  readonly memory?: number;
}

type Batches = DataLoader<[Tensor, Tensor], [Tensor, Tensor]>;

const DEFAULTS = { epochs: 16, rank: 16, alpha: 32, lr: 1e-2, batch: 8 };
/** Of the text; what is left is for evaluation. */
const SHARE = 0.9;
const SAVE_EVERY = 10;

export class FineTuning {
  /** Of a step, before the first one. */
  readonly plan: MemoryPlan;
  readonly #optimizer: AdamW;
  #pausing: { readonly over: Promise<void>; readonly end: () => void } | undefined;

  private constructor(
    readonly model: LanguageModel,
    readonly tokenizer: Tokenizer,
    private readonly seen: Batches,
    private readonly unseen: Batches,
    private readonly options: FineTuningOptions & typeof DEFAULTS,
    length: number,
  ) {
    const { lr, batch, memory = Number.POSITIVE_INFINITY } = options;
    this.#optimizer = new AdamW(model.namedParameters({ trainable: true }), { lr, weightDecay: 0 });
    this.plan = fitsIn(model, { batch, length, optimizer: this.#optimizer });
    const { bytes, parts } = this.plan;
    const problem = () =>
      `a step must fit in ${memory} bytes, got ${bytes}, ${parts.weights} for weights and ${parts.activations} for activations.`;
    check(bytes <= memory, "OUT_OF_MEMORY", "FineTuning", problem, "Use a smaller batch or length, or quantize.");
  }

  /** @throws OptError BAD_ARGUMENT for a text that is too short; OUT_OF_MEMORY; what `fromPretrained` throws */
  static async open(given: FineTuningOptions): Promise<FineTuning> {
    const options = { ...DEFAULTS, ...given };
    const { base, baseFiles, quantize, text, rank, alpha, batch } = options;
    const places = { ...(baseFiles && { fileSystem: baseFiles }), ...(quantize && { quantize }) };
    const { model, tokenizer: own, config } = await fromPretrained(base, places);
    const isKnown = own !== null || config.vocabulary === CHARACTERS;
    check(isKnown, "MISSING", base, () => "the folder must have a tokenizer.json.", "Copy it from the model's page.");
    const tokenizer = own ?? characters;
    const { positions, family } = config;
    const { length = Math.min(positions, 256) } = options;
    const cut = Math.floor(text.length * SHARE);
    const samples = (part: string) => textDataset(tokenizer, [part], { length });
    const generator = new Generator(1);
    lora(model, { rank, alpha, targets: family === "gpt2" ? ["c_attn"] : ["q_proj", "v_proj"], generator });
    const seen = new DataLoader(samples(text.slice(0, cut)), { batchSize: batch, shuffle: true, generator });
    const unseen = new DataLoader(samples(text.slice(cut)), { batchSize: batch });
    return new FineTuning(model, tokenizer, seen, unseen, options, length);
  }

  get isPaused(): boolean {
    return this.#pausing !== undefined;
  }

  /** Holds the run after the present step, or lets it go on. */
  pause(isPaused: boolean): void {
    this.#pausing?.end();
    let end = () => {};
    this.#pausing = isPaused
      ? { over: new Promise((resolve) => (end = () => resolve())), end: () => end() }
      : undefined;
  }

  /** Trains to the end of the last epoch, from the newest checkpoint on. */
  train(callbacks: readonly Callback[] = [], signal?: AbortSignal): Promise<History> {
    const { folder, files, epochs } = this.options;
    const saving = checkpoints(folder, { every: SAVE_EVERY, trainable: true, ...(files && { fileSystem: files }) });
    const holding: Callback = { onStepEnd: () => this.#pausing?.over };
    return fit(this.model, {
      ...{ data: this.seen, loss: causalLoss, optimizer: this.#optimizer, epochs, resume: true },
      callbacks: [...callbacks, saving, holding],
      ...(signal && { signal }),
    });
  }

  /** The loss on what was not trained. */
  async evaluate(): Promise<number> {
    return (await evaluate(this.model, { data: this.unseen, loss: causalLoss })).loss!;
  }

  /** So many letters after a prompt, in turns of half of the base's positions. */
  async write(prompt = "\n", letters = 200): Promise<string> {
    const half = Math.floor(this.model.config.positions / 2);
    let [text, before] = [prompt, 0];
    while (text.length < prompt.length + letters && text.length > before) {
      before = text.length;
      const options = { maxTokens: Math.min(half, letters), temperature: 0.5, seed: before };
      for await (const piece of generate(this.model, this.tokenizer, text.slice(-half), options)) text += piece;
    }
    return text;
  }

  /** PEFT's files. */
  async adapter(): Promise<Readonly<Record<string, Blob>>> {
    const files = memoryFileSystem();
    await saveAdapter(this.model, "adapter", { fileSystem: files });
    const names = ["adapter_config.json", "adapter_model.safetensors"];
    return Object.fromEntries(names.map((name) => [name, files.blob(`adapter/${name}`)]));
  }
}

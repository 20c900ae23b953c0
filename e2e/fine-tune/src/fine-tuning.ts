/** A fine-tuning run, in Node and in a page: a model of GPT-2's layout, adapters of low rank, a text, and an adapter file to go on from. */

import { AdamW } from "@opt/adam-amsgrad";
import { type CheckpointContents, type loadCheckpoint, optimizerContents, optimizerState } from "@opt/checkpoint";
import { check, type Device, Generator, type Tensor } from "@opt/core";
import { DataLoader, type DataLoaderState, Windows } from "@opt/data";
import { lora, merge } from "@opt/models";
import { crossEntropy, type StateDict } from "@opt/nn";
import { type Callback, evaluate, fit } from "@opt/train";
import { Gpt } from "@opt-e2e/tiny-gpt";
import { fromGpt2, fromPeft, sizesOf, toGpt2, toPeft } from "./gpt2-names";

export interface FineTuningOptions {
  /** Tokens of the text to learn; the last tenth is for evaluation. */
  readonly tokens: Int32Array;
  /** Tokens of a sample; default: as many as the base has places. */
  readonly length?: number;
  readonly rank?: number;
  readonly alpha?: number;
  readonly batch?: number;
  readonly lr?: number;
  readonly seed?: number;
}

const SHARE = 0.9;

/** A `Gpt` with the weights of a GPT-2 file. @throws OptError BAD_STATE */
export function loadGpt2(state: Readonly<StateDict>, heads: number, device: Device): Gpt {
  const ours = fromGpt2(state);
  try {
    const model = new Gpt({ ...sizesOf(ours), heads, gpt2: true, device });
    model.loadStateDict(ours);
    return model;
  } finally {
    for (const tensor of Object.values(ours)) tensor.dispose();
  }
}

/** The mean loss of a model on stretches that follow each other. */
export async function lossOn(model: Gpt, tokens: Int32Array, length: number, batch: number): Promise<number> {
  const data = new DataLoader(new Windows(tokens, { length, stride: length }), { batchSize: batch });
  return (await evaluate(model, { data, loss: crossEntropy })).loss!;
}

export class FineTuning {
  readonly optimizer: AdamW;
  /** Steps that were made. */
  step = 0;
  /** Where the batches stand after the last step. */
  #batches: DataLoaderState | undefined;
  private readonly loader: DataLoader<[Tensor, Tensor], [Tensor, Tensor]>;
  readonly #unseen: Int32Array;
  readonly #length: number;
  readonly #batch: number;

  /** @throws OptError BAD_ARGUMENT for a text that is too short; BAD_STATE if the model has adapters */
  constructor(
    readonly model: Gpt,
    { tokens, length = model.length, rank = 4, alpha = 8, batch = 8, lr = 3e-3, seed = 1 }: FineTuningOptions,
  ) {
    const held = Math.floor(tokens.length * SHARE);
    const isLong = held >= length + batch && tokens.length - held > length;
    check(
      isLong,
      "BAD_ARGUMENT",
      "FineTuning",
      () => `a batch of ${batch} and evaluation need more text, got ${tokens.length} tokens of samples of ${length}.`,
      "Give more text, or a smaller length or batch.",
    );
    const generator = new Generator(seed);
    lora(model, { rank, alpha, targets: ["qkv"], generator });
    this.optimizer = new AdamW(model.namedParameters(), { lr, weightDecay: 0 });
    this.#unseen = tokens.subarray(held);
    this.#length = length;
    this.#batch = batch;
    const seen = new Windows(tokens.subarray(0, held), { length });
    this.loader = new DataLoader(seen, { batchSize: batch, shuffle: true, dropLast: true, generator });
  }

  /** Trains until `until` steps were made, or the signal ends it; gives the loss of each. */
  async train(until: number, callbacks: readonly Callback[] = [], signal?: AbortSignal): Promise<readonly number[]> {
    const { model, optimizer, loader, step: before } = this;
    const count: Callback = {
      onStepEnd: ({ step }, control) => {
        this.step = before + step;
        this.#batches = loader.stateDict();
        control.stop = this.step === until;
      },
    };
    if (this.#batches) loader.loadStateDict(this.#batches);
    const { losses } = await fit(model, {
      ...{ data: loader, loss: crossEntropy, optimizer, signal },
      epochs: Math.ceil((until - before) / loader.length) + 1, // the first one may have begun
      callbacks: [count, ...callbacks],
    });
    return losses;
  }

  evaluate(): Promise<number> {
    return lossOn(this.model, this.#unseen, this.#length, this.#batch);
  }

  /** The adapters as PEFT's file has them, and what is needed to go on. */
  adapter(): CheckpointContents {
    const { tensors, values } = optimizerContents(this.optimizer.stateDict());
    return {
      step: this.step,
      tensors: { ...toPeft(this.model.stateDict()), ...tensors },
      values: { ...values, loader: this.#batches ?? this.loader.stateDict() },
    };
  }

  resume(saved: Awaited<ReturnType<typeof loadCheckpoint>>): void {
    this.model.loadStateDict(fromPeft(saved.tensors), { strict: false });
    this.optimizer.loadStateDict(optimizerState(saved));
    this.#batches = (saved.values as unknown as { loader: DataLoaderState }).loader;
    this.step = saved.step!;
  }

  /** Ends the run: the model's own weights have what the adapters learned, under GPT-2's names. */
  merge(): StateDict {
    this.optimizer.dispose();
    merge(this.model);
    return toGpt2(this.model.stateDict());
  }
}

/** What PEFT wants to know of an adapter, beside its tensors. */
export function adapterConfig(base: string, rank: number, alpha: number) {
  return {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    base_model_name_or_path: base,
    r: rank,
    lora_alpha: alpha,
    lora_dropout: 0,
    target_modules: ["c_attn"],
    fan_in_fan_out: true,
    bias: "none",
  };
}

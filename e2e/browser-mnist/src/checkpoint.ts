/**
 * A run as one safetensors file: weights under their names, optimizer state under `<name>.<key>`, the curves under `curve.*`,
 * the rest in its metadata.
 */
import { type OptimizerState, type Tensor, tensor } from "@opt/core";
import { isOptimizerName } from "./optimizers";
import type { Measured } from "./run";
import type { Progress, Session, Settings } from "./session";

interface Entry {
  readonly dtype: "F32";
  readonly shape: number[];
  readonly data_offsets: [number, number];
}

type Numbers = Record<string, Record<string, number>>;

interface Metadata {
  readonly settings: Settings;
  readonly progress: Progress;
  readonly groups: OptimizerState["groups"];
  /** The part of the optimizer's state that is no tensor. */
  readonly numbers: Numbers;
}

export interface Curves {
  readonly losses: readonly number[];
  readonly measured: readonly Measured[];
}

const LOSSES = "curve.losses";
/** Rows of step and accuracy. */
const MEASURED = "curve.measured";

export async function saveRun(session: Session, { losses, measured }: Curves): Promise<Blob> {
  const { groups, state } = session.optimizer.stateDict();
  const numbers: Numbers = {};
  const tensors = new Map<string, Tensor>(session.model.namedParameters());
  for (const [name, values] of Object.entries(state)) {
    numbers[name] = {};
    for (const [key, value] of Object.entries(values)) {
      if (typeof value === "number") numbers[name][key] = value;
      else tensors.set(`${name}.${key}`, value as Tensor);
    }
  }
  const metadata: Metadata = { settings: session.settings, progress: session.progress, groups, numbers };
  const header: Record<string, unknown> = { __metadata__: { run: JSON.stringify(metadata) } };
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let end = 0;
  const add = (name: string, shape: readonly number[], bytes: Uint8Array<ArrayBuffer>) => {
    header[name] = { dtype: "F32", shape: [...shape], data_offsets: [end, end + bytes.length] };
    end += bytes.length;
    parts.push(bytes);
  };
  for (const [name, value] of tensors) add(name, value.shape, (await value.bytes()).slice());
  const floats = (values: readonly number[]) => new Uint8Array(Float32Array.from(values).buffer);
  add(LOSSES, [losses.length], floats(losses));
  add(MEASURED, [measured.length, 2], floats(measured.flatMap(({ step, accuracy }) => [step, accuracy])));
  const text = new TextEncoder().encode(JSON.stringify(header));
  const padded = new Uint8Array(Math.ceil(text.length / 8) * 8).fill(0x20);
  padded.set(text);
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(padded.length), true);
  return new Blob([length, padded, ...parts], { type: "application/octet-stream" });
}

/** A file that this page has written. */
export class SavedRun {
  readonly metadata: Metadata;
  private readonly entries: Readonly<Record<string, Entry>>;
  private readonly data: number;

  /** @throws Error saying in words what is wrong with the file */
  constructor(private readonly file: ArrayBuffer) {
    const length = file.byteLength < 8 ? Number.NaN : Number(new DataView(file).getBigUint64(0, true));
    if (!(length <= file.byteLength - 8))
      throw new Error("This is no safetensors file, or a part of one: its header does not fit.");
    const { __metadata__: metadata, ...entries } = parsed(new TextDecoder().decode(new Uint8Array(file, 8, length)));
    if (metadata?.run === undefined) throw new Error("This safetensors file was not written by this page.");
    this.metadata = parsed(metadata.run);
    this.entries = entries;
    this.data = 8 + length;
    const { optimizer } = this.metadata.settings;
    if (!isOptimizerName(optimizer)) throw new Error(`This page does not know the file's optimizer, ${optimizer}.`);
    const ends = Object.values(this.entries).map(({ data_offsets: [, end] }) => end);
    if (Math.max(0, ...ends) !== file.byteLength - this.data)
      throw new Error("This file is not whole: bytes are missing.");
  }

  private floats(name: string): Float32Array {
    const { data_offsets: offsets } = this.entries[name]!;
    return new Float32Array(this.file.slice(this.data + offsets[0], this.data + offsets[1]));
  }

  get curves(): { losses: number[]; measured: Measured[] } {
    const rows = this.floats(MEASURED);
    const measured = Array.from({ length: rows.length / 2 }, (_, i) => ({
      step: rows[2 * i]!,
      accuracy: rows[2 * i + 1]!,
    }));
    return { losses: [...this.floats(LOSSES)], measured };
  }

  /** Puts weights, state and progress into a new session of the same settings. */
  loadInto(session: Session): void {
    const { progress, groups, numbers } = this.metadata;
    const read = (name: string) => tensor(this.floats(name), { shape: this.entries[name]!.shape });
    const names = [...session.model.namedParameters()].map(([name]) => name);
    const weights = Object.fromEntries(names.map((name) => [name, read(name)]));
    session.model.loadStateDict(weights);
    const state: OptimizerState["state"] = {};
    for (const [name, values] of Object.entries(numbers)) {
      const keys = Object.keys(this.entries).filter((key) => key.startsWith(`${name}.`));
      const tensors = keys.map((key): [string, Tensor] => [key.slice(name.length + 1), read(key)]);
      state[name] = { ...values, ...Object.fromEntries(tensors) } as OptimizerState["state"][string];
    }
    session.optimizer.loadStateDict({ groups, state });
    for (const made of [weights, ...Object.values(state)].flatMap((group) => Object.values(group))) {
      if (typeof made === "object") (made as Tensor).dispose();
    }
    session.progress = progress;
  }
}

function parsed(text: string) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("This is no safetensors file: its header is no JSON.");
  }
}

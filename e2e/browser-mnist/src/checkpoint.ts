/** The session as one safetensors file: weights under their names, optimizer state under `<name>.<key>`, the rest in its metadata. */
import { type Tensor, tensor } from "@opt/core";
import type { OptimizerName, Session } from "./session";

interface Entry {
  readonly dtype: "F32";
  readonly shape: number[];
  readonly data_offsets: [number, number];
}

interface Header {
  readonly __metadata__: { readonly steps: string; readonly optimizer: OptimizerName; readonly state: string };
  readonly [name: string]: Entry | Header["__metadata__"];
}

export async function saveSession(session: Session): Promise<Blob> {
  const { groups, state } = session.optimizer.stateDict();
  const numbers: Record<string, Record<string, number>> = {};
  const tensors = new Map<string, Tensor>(session.model.namedParameters());
  for (const [name, values] of Object.entries(state)) {
    numbers[name] = {};
    for (const [key, value] of Object.entries(values)) {
      if (typeof value === "number") numbers[name][key] = value;
      else tensors.set(`${name}.${key}`, value as Tensor);
    }
  }
  const header: Record<string, unknown> = {
    __metadata__: {
      steps: String(session.steps),
      optimizer: session.optimizerName,
      state: JSON.stringify({ groups, numbers }),
    },
  };
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let end = 0;
  for (const [name, value] of tensors) {
    const bytes = (await value.bytes()).slice();
    header[name] = { dtype: "F32", shape: [...value.shape], data_offsets: [end, end + bytes.length] };
    end += bytes.length;
    parts.push(bytes);
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const padded = new Uint8Array(Math.ceil(text.length / 8) * 8).fill(0x20);
  padded.set(text);
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(padded.length), true);
  return new Blob([length, padded, ...parts], { type: "application/octet-stream" });
}

export function readHeader(file: ArrayBuffer): { header: Header; data: number } {
  const length = file.byteLength < 8 ? Number.NaN : Number(new DataView(file).getBigUint64(0, true));
  if (!(length <= file.byteLength - 8)) throw new Error("this is no safetensors file: its header does not fit.");
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, length))) as Header;
  if (header.__metadata__?.state === undefined) throw new Error("this checkpoint was not written by this page.");
  return { header, data: 8 + length };
}

/** Puts weights, state and options into a session whose optimizer is the file's. */
export function loadSession(session: Session, file: ArrayBuffer): void {
  const { header, data } = readHeader(file);
  const read = (name: string): Tensor => {
    const { shape, data_offsets: offsets } = header[name] as Entry;
    const bytes = file.slice(data + offsets[0], data + offsets[1]);
    return tensor(new Float32Array(bytes), { shape });
  };
  const weights = Object.fromEntries([...session.model.namedParameters()].map(([name]) => [name, read(name)]));
  session.model.loadStateDict(weights);
  const { groups, numbers } = JSON.parse(header.__metadata__.state);
  const state: Record<string, Record<string, number | Tensor>> = {};
  for (const [name, values] of Object.entries(numbers as Record<string, Record<string, number>>)) {
    const keys = Object.keys(header).filter((key) => key.startsWith(`${name}.exp_`) || key.startsWith(`${name}.max_`));
    const tensors = keys.map((key): [string, Tensor] => [key.slice(name.length + 1), read(key)]);
    state[name] = { ...values, ...Object.fromEntries(tensors) };
  }
  session.optimizer.loadStateDict({ groups, state } as never);
  for (const made of [weights, ...Object.values(state)].flatMap((group) => Object.values(group))) {
    if (typeof made === "object") made.dispose();
  }
  session.steps = Number(header.__metadata__.steps);
}

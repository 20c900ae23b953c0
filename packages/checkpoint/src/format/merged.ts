/** What a merged file says beyond its tensors, so that it is a checkpoint still: in metadata that other readers ignore. */
import { isCount } from "../layout/counts";
import { jsonText } from "./json/plain";
import { isObject, type Json, type Role, type SourceTensor, type TensorSource } from "./source";

/** The name in the metadata. */
const METADATA_KEY = "opt-checkpoint";

export interface MergedMetadata {
  readonly step?: number;
  readonly values: { readonly [key: string]: Json };
  readonly tensors: { readonly [name: string]: { readonly role: Role; readonly follows?: string } };
}

export function encodeMerged(source: TensorSource, tensors: readonly SourceTensor[]): Record<string, string> {
  const described = tensors.filter(({ role }) => role !== undefined);
  const roles = Object.fromEntries(
    described.map(({ name, role, follows }) => [name, { role, ...(follows === undefined ? {} : { follows }) }]),
  );
  const { step, values } = source;
  const text = jsonText({ ...(step === undefined ? {} : { step }), values, tensors: roles } as Json);
  return { format: "pt", [METADATA_KEY]: text };
}

/** Undefined where the file is not ours, or says something that we would not have written. */
export function decodeMerged(metadata: Readonly<Record<string, string>>): MergedMetadata | undefined {
  const text = metadata[METADATA_KEY];
  if (text === undefined) return undefined;
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(raw) || !isObject(raw.values) || !isObject(raw.tensors)) return undefined;
  const { step, values } = raw;
  if (step !== undefined && !isCount(step)) return undefined;
  const roles = Object.entries(raw.tensors).flatMap(([name, said]) => {
    const { role, follows } = isObject(said) ? said : {};
    const isRole = role === "param" || role === "state" || role === "scalar";
    return isRole ? [[name, { role, ...(typeof follows === "string" ? { follows } : {}) }] as const] : [];
  });
  return { ...(step === undefined ? {} : { step }), values, tensors: Object.fromEntries(roles) };
}

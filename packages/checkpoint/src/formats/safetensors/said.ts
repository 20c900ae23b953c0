/** What the files of a set say of the whole run, beside their tensors. */
import { decodeMerged, type MergedMetadata } from "../../format/merged";
import { type Json, redescribed, type SourceTensor } from "../../format/source";

export class Said {
  step: number | undefined;
  readonly values: Record<string, Json> = {};
  readonly #roles = new Map<string, MergedMetadata["tensors"][string]>();

  /** Takes the metadata of a file: ours, or words of others. Without whose arrays it holds (`format`), which is no value of the run. */
  add({ format: _, ...metadata }: Readonly<Record<string, string>>): void {
    const merged = decodeMerged(metadata);
    Object.assign(this.values, merged?.values ?? metadata);
    this.step ??= merged?.step;
    for (const [name, role] of Object.entries(merged?.tensors ?? {})) this.#roles.set(name, role);
  }

  /** The tensor in the role that a file gives it. */
  described(tensor: SourceTensor): SourceTensor {
    return redescribed(tensor, this.#roles.get(tensor.name) ?? {});
  }
}

import type { FolderEntry } from "../../stores/file-system";

const ORBAX_STEP = "_CHECKPOINT_METADATA";
export const ORBAX_TREE = "_METADATA";
export const OCDBT_MANIFEST = "manifest.ocdbt";

/** Whether a folder holds a pytree of Orbax, or the items of one of its steps. */
export function isOrbax(entries: readonly FolderEntry[]): boolean {
  const names = [ORBAX_STEP, ORBAX_TREE, OCDBT_MANIFEST];
  return entries.some(({ name, kind }) => kind === "file" && names.includes(name));
}

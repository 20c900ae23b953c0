import type { Candidate } from "../../format/source";

/** A step by its files, or a folder of steps by the file that names the newest. */
export function isDeepspeed({ entries }: Candidate): boolean {
  const isStep = entries.some(({ name }) => /^(zero_pp_rank_\d+_)?mp_rank_\d+_model_states\.pt$/.test(name));
  const isRoot = entries.some(({ name, kind }) => kind === "file" && /^latest(_universal)?$/.test(name));
  return isStep || (isRoot && entries.some(({ kind }) => kind === "folder"));
}

/** The names under which a checkpoint is written anew: an optimizer's state is called after its parameter, whatever system wrote it. */
import type { TensorSource } from "../format/source";
import { type Rename, renamePatterns } from "../formats/names/rename";
import type { NameOptions } from "../formats/names/renaming";
import { checkUsed } from "../layout/nearest";
import { isNative, type OpenOptions, type Place, useSource } from "../read/open";
import { checkExcluded, withoutTensors } from "../read/select";
import { underOurNames } from "./names";

/** `exclude` leaves out what the source calls so, or what is called so here. */
export interface NamingOptions extends NameOptions {
  /** New names for the result, by pattern: `{ "encoder.*": "*" }`. The first pattern that matches wins; optimizer state follows. */
  readonly rename?: Rename;
}

/** For `checkOptions`. */
export const NAMING_OPTIONS = { map: "object", parameterOrder: "any", rename: "object" } as const;

/** Files that belong together (a model and its optimizer) as one checkpoint under our names. @throws OptError as `underOurNames`, BAD_ARGUMENT for a pattern that matches nothing */
export async function named(
  sources: readonly TensorSource[],
  { exclude = [], rename = {}, ...naming }: NamingOptions & { readonly exclude?: readonly string[] },
): Promise<TensorSource> {
  const unused = new Set(exclude);
  const kept = sources.map((source) => withoutTensors(source, exclude, unused));
  // Ours has these names already.
  const isOurs = sources.length === 1 && isNative(sources[0]!) && naming.map === undefined;
  const ours = withoutTensors(isOurs ? kept[0]! : await underOurNames(kept, naming), exclude, unused);
  checkExcluded(exclude, unused, [...sources, ours], ours);
  const idle = new Set(Object.keys(rename));
  const result = renamePatterns(ours, rename, idle);
  checkUsed("rename", idle, ours.tensors.keys());
  return result;
}

/** Opens a checkpoint and writes what it is under our names; `exclude` is done with. */
export function useNamed<T, Options extends NamingOptions & OpenOptions & { readonly exclude?: readonly string[] }>(
  place: Place,
  options: Options,
  body: (source: TensorSource, rest: Omit<Options, "exclude">) => Promise<T>,
): Promise<T> {
  const { exclude: _, ...rest } = options;
  return useSource(place, options, async (source) => body(await named([source], options), rest));
}

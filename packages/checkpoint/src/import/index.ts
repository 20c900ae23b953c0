/** The formats of other systems, in the order in which they are asked whether a path is theirs. */
import type { Importer } from "../source";

export const importers: readonly Importer[] = [];

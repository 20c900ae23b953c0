/** GaLore and APOLLO: AdamW with a state of low rank. */
export { APOLLO, type APOLLOOptions, apolloRules } from "./apollo";
export { GaLore, type GaLoreOptions, galoreRules } from "./galore";
export type { ProjectionType } from "./projection";

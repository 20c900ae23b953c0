export { Adam, AdamW } from "./adam";
export type { AdamOptions } from "./options";

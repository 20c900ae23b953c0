export { Adam, type AdamOptions, AdamW } from "./adam";

export { Adamax } from "./adamax";
export type { AdamaxOptions } from "./options";

export { NAdam } from "./nadam";
export type { NAdamOptions } from "./options";

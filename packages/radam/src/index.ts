export type { RAdamOptions } from "./options";
export { RAdam } from "./radam";

export type { RMSpropOptions } from "./options";
export { RMSprop } from "./rmsprop";

export type { SGDOptions } from "./options";
export { SGD } from "./sgd";

export { NAdam, type NAdamOptions } from "./nadam";

/** What the site's demo uses. */
export { FineTuning, type FineTuningOptions } from "./fine-tuning";

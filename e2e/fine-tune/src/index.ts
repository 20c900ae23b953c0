/** What the site's demo uses. */
export { decode, encode } from "./base";
export { FineTuning, loadGpt2 } from "./fine-tuning";

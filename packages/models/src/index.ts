/** `@opt/models`: bring a language model, fine-tune it, take it along. */
export type { Target } from "./adapters/linear-layers";
export { type LoraOptions, lora, merge, unmerge } from "./adapters/lora";
export {
  type LoadAdapterOptions,
  loadAdapter,
  type SaveAdapterOptions,
  saveAdapter,
} from "./adapters/peft-files";
export { type Quantization, type QuantizeOptions, quantize } from "./adapters/quantize";
export { causalLoss } from "./data/causal-loss";
export { type ChatDatasetOptions, type ChatMessage, type ChatTokenizer, chatDataset } from "./data/chat-dataset";
export { type TextDatasetOptions, textDataset } from "./data/text-dataset";
export type { TextTokenizer, TokenDataset } from "./data/token-rows";
export { type FitsInOptions, fitsIn, type MemoryPlan } from "./plan/fits-in";

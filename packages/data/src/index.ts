/** `@opt/data`: datasets and the loader that makes batches of them. */
export { Alphabet } from "./alphabet";
export { type Collated, collate, type Field } from "./collate";
export { type CsvOptions, fromCsv } from "./csv";
export { DataLoader, type DataLoaderOptions, type DataLoaderState } from "./data-loader";
export type { BatchedDataset, Dataset } from "./dataset";
export { parseIdx } from "./idx";
export { fromImages, type ImagesOptions, type Picture } from "./images";
export { randomSplit, Subset } from "./subset";
export { type HostArray, type Row, TensorDataset } from "./tensor-dataset";
export { Windows } from "./windows";

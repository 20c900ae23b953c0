// Everything public is called with arguments of the wrong kind: what comes out is an OptError, of the code that is stored.
import { Generator, tensor } from "@opt/core";
import { rawErrors, storedCodes } from "@opt/testkit";
import { expect, it } from "vitest";
import * as data from "./index";

const expectStored = storedCodes(new URL("../testing/goldens/error-codes.json", import.meta.url));

// biome-ignore lint/suspicious/noExplicitAny: any arguments are the point
type Any = any;
const rows = () => tensor([[0], [1], [2], [3]]);
const samples = () => [1, 2, 3, 4];
const generator = () => new Generator(1);
const dataset = () => new data.TensorDataset(rows());
const tokens = () => Uint8Array.of(1, 2, 3, 4, 5);
const loader = () => new data.DataLoader(samples(), { generator: generator(), shuffle: true });
const epoch = () => ({ ...loader().stateDict(), seed: 7, served: 1 });
const idx = () => Uint8Array.of(0, 0, 8, 1, 0, 0, 0, 2, 7, 8);

/** What is called, and its valid arguments. */
const CALLS: Readonly<Record<string, readonly [call: (...args: Any[]) => unknown, valid: () => unknown[]]>> = {
  Alphabet: [(...args) => new (data.Alphabet as Any)(...args), () => ["abc"]],
  "Alphabet.encode": [(...args) => (new data.Alphabet("abc") as Any).encode(...args), () => ["cab"]],
  "Alphabet.decode": [(...args) => (new data.Alphabet("abc") as Any).decode(...args), () => [[0, 2]]],
  collate: [data.collate as Any, () => [[{ x: 1 }, { x: 2 }]]],
  "collate of arrays": [
    (...items) => data.collate(items),
    () => [
      [1, 2],
      [3, 4],
    ],
  ],
  "collate of objects": [
    (...items) => data.collate(items),
    () => [
      { x: 1, y: [1] },
      { x: 2, y: [2] },
    ],
  ],
  DataLoader: [
    (...args) => new (data.DataLoader as Any)(...args),
    () => [
      samples(),
      { batchSize: 2, shuffle: true, dropLast: true, prefetch: 1, generator: generator(), collate: () => 1 },
    ],
  ],
  "DataLoader by a sampler": [
    (...args) => [...new (data.DataLoader as Any)(...args)],
    () => [samples(), { sampler: [3, 1] }],
  ],
  "DataLoader of a dataset": [
    (given) => new (data.DataLoader as Any)(given),
    () => [{ length: 4, get: () => 1, batch: () => 1 }],
  ],
  "DataLoader.loadStateDict": [(...args) => (loader() as Any).loadStateDict(...args), () => [epoch()]],
  "DataLoader.loadStateDict without a generator": [
    (...args) => (new data.DataLoader(samples()) as Any).loadStateDict(...args),
    () => [{ ...new data.DataLoader(samples()).stateDict(), seed: 7, served: 1 }],
  ],
  fromCsv: [data.fromCsv as Any, () => ["a;b\n1;x\n", { separator: ";" }]],
  fromImages: [
    data.fromImages as Any,
    () => [[{ data: new Uint8ClampedArray(4), width: 1, height: 1 }], { channels: 1 }],
  ],
  parseIdx: [data.parseIdx as Any, () => [idx()]],
  randomSplit: [data.randomSplit as Any, () => [samples(), [3, 1], generator()]],
  "randomSplit's lengths": [(...lengths) => data.randomSplit(samples(), lengths), () => [0.5, 0.5]],
  Subset: [(...args) => new (data.Subset as Any)(...args), () => [samples(), [3, 1]]],
  "Subset's positions": [(...indices) => new data.Subset(samples(), indices), () => [0, 3]],
  "Subset.get": [(...args) => (new data.Subset(dataset(), [3, 1]) as Any).get(...args), () => [1]],
  TensorDataset: [
    (...args) => new (data.TensorDataset as Any)(...args),
    () => [rows(), { data: Uint8Array.of(1, 2, 3, 4), shape: [4, 1] }],
  ],
  "TensorDataset of the host": [
    (...args) => new (data.TensorDataset as Any)(...args),
    () => [{ data: tokens(), shape: [5] }],
  ],
  "TensorDataset.get": [(...args) => (dataset() as Any).get(...args), () => [3]],
  "TensorDataset.batch": [(...args) => (dataset() as Any).batch(...args), () => [Int32Array.of(3)]],
  Windows: [(...args) => new (data.Windows as Any)(...args), () => [tokens(), { length: 2, stride: 1 }]],
  "Windows.get": [(...args) => (new data.Windows(tokens(), { length: 2 }) as Any).get(...args), () => [2]],
};

it("tries each export", () => {
  const tried = new Set(Object.keys(CALLS).map((name) => /\w+/.exec(name)![0]));
  expect(Object.keys(data).filter((name) => !tried.has(name))).toEqual([]);
});

it.each(Object.entries(CALLS))("%s", async (name, [call, valid]) => {
  await call(...valid());
  const codes: string[] = [];
  expect(await rawErrors(name, call as never, valid, codes, true)).toEqual([]);
  expectStored(name, codes);
});

// What was given and what came of it have nothing in common: no memory, no list, and no state that was rejected.
import { Generator, OptError, Tensor, tensor } from "@opt/core";
import { spoil } from "@opt/testkit";
import { expect, it } from "vitest";
import { collate, DataLoader, fromImages, Subset, TensorDataset, Windows } from "./index";

const numbers = (value: unknown): unknown =>
  value instanceof Tensor ? value.tolist() : Array.isArray(value) ? value.map(numbers) : value;
const overwrite = (value: unknown): void => {
  if (value instanceof Tensor) value.set(value.mul(0).add(9).to(value.dtype));
  else if (ArrayBuffer.isView(value)) (value as Float32Array).fill(9);
  else if (Array.isArray(value)) value.forEach(overwrite);
};

const x = () => tensor([[1], [2]]);
const one = Int32Array.of(0);
/** What is given, and how a sample or batch is made of it. */
const MADE: Readonly<Record<string, readonly [given: () => unknown[], make: (...given: never[]) => () => unknown]>> = {
  "collate of a tensor": [() => [x()], (x: Tensor) => () => collate([x])],
  "collate of tensors": [
    () => [x(), x()],
    (...x: Tensor[]) =>
      () =>
        collate(x),
  ],
  "collate of an array": [() => [Int32Array.of(1)], (x: Int32Array) => () => collate([x])],
  "TensorDataset.get": [() => [x()], (x: Tensor) => () => new TensorDataset(x).get(1)],
  "TensorDataset.batch": [() => [Int32Array.of(1)], (x) => () => new TensorDataset({ data: x, shape: [1] }).batch(one)],
  "Windows.get": [() => [Int32Array.of(1, 2)], (x: Int32Array) => () => new Windows(x, { length: 1 }).get(0)],
  "Windows.batch": [() => [Int32Array.of(1, 2)], (x: Int32Array) => () => new Windows(x, { length: 1 }).batch(one)],
  "Subset.batch": [() => [x()], (x: Tensor) => () => new Subset(new TensorDataset(x), [1]).batch(one)],
};

it.each(Object.entries(MADE))("%s", (_, [given, make]) => {
  const args = given();
  const read = make(...(args as never[]));
  const [first, expected] = [read(), numbers(read())];
  overwrite(args);
  expect(numbers(first)).toEqual(expected);
  const others = given();
  const again = make(...(others as never[]));
  overwrite(again());
  expect([numbers(again()), others]).toEqual([expected, given()]);
});

it("keep nothing of the lists and options that they were given", () => {
  const KEPT: readonly [given: unknown, read: (given: never) => () => unknown][] = [
    [
      [2, 0],
      (positions: number[]) =>
        (
          (part) => () =>
            part.get(0)
        )(new Subset([1, 2, 3], positions)),
    ],
    [
      { batchSize: 2, shuffle: true, dropLast: true, generator: new Generator(1), collate: (list: number[]) => list },
      (options: object) => {
        const loader = new DataLoader<number, number[]>([1, 2, 3], options);
        return () => [loader.length, loader.batchSize, ...loader].flat().length;
      },
    ],
    [
      { length: 1, stride: 2 },
      (options: { length: number }) =>
        (
          (w) => () =>
            w.length
        )(new Windows(new Uint8Array(6), options)),
    ],
    [
      { data: new Uint8Array(4), shape: [2, 2] },
      (column: { data: Uint8Array; shape: number[] }) => {
        const rows = new TensorDataset(column);
        return () => [rows.length, rows.get(1)[0]!.shape];
      },
    ],
    [
      [{ data: new Uint8Array(4), width: 1, height: 1 }],
      (images) =>
        (
          (made) => () =>
            made.shape
        )(fromImages(images)),
    ],
  ];
  for (const [given, read] of KEPT) {
    const reading = read(given as never);
    const expected = String(reading());
    spoil(given);
    expect(String(reading())).toBe(expected);
  }
});

/** A sampler that keeps its place. */
class Placed {
  readonly length = 4;
  taken = 0;
  *[Symbol.iterator]() {
    for (let i = 0; i < 4; i++) yield i;
  }
  stateDict = () => ({ taken: this.taken });
  stateAfter = ({ taken }: { taken: number }, count: number) => ({ taken: taken + count });
  loadStateDict(state: unknown) {
    const { taken } = Object(state) as { taken?: unknown };
    if (!Number.isInteger(taken) || (taken as number) < 0) throw new OptError("BAD_STATE", "Placed", "no place.");
    this.taken = taken as number;
  }
}

it.each(["shuffled", "by a sampler"])("a loader %s that rejects a state is where it was", (kind) => {
  const loader = () => {
    const order = kind === "shuffled" ? { shuffle: true } : { sampler: new Placed() };
    return new DataLoader([1, 2, 3, 4], { ...order, generator: new Generator(1) });
  };
  const other = loader();
  for (const _ of other) if (other.stateDict()) break;
  const places = (value: object): [object, string][] =>
    Object.entries(value).flatMap(([key, each]) => [
      [value, key] as [object, string],
      ...(Object(each) === each ? places(each as object) : []),
    ]);
  const count = places(other.stateDict()).length;
  expect(count).toBeGreaterThan(4);
  for (let place = 0; place < count; place++)
    for (const wrong of [undefined, null, -1, 0.5, "1", {}, [], 2 ** 60]) {
      const mine = loader();
      const before = mine.stateDict();
      const state = structuredClone(other.stateDict());
      const [of, key] = places(state)[place]!;
      Object.assign(of, { [key]: wrong });
      try {
        mine.loadStateDict(state);
      } catch (error) {
        expect([key, wrong, error instanceof OptError, mine.stateDict()]).toEqual([key, wrong, true, before]);
      }
    }
});

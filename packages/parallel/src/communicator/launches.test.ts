// Every collective on every dtype, with no, one and many rows, on whole tensors and on parts of larger ones: values, neighbours and memory.
import { type DType, type Tensor, tensor, tidy, zeros } from "@opt/core";
import { expect, it } from "vitest";
import { memoryRanks } from "../../testing/memory-ranks";
import type { Communicator } from "./communicator";

type Numbers = readonly number[];
const sum = (all: readonly Numbers[]) => all[0]!.map((_, i) => all.reduce((total, each) => total + each[i]!, 0));
const part = (rows: number, size: number, rank: number) => {
  const count = (r: number) => Math.floor(rows / size) + (r < rows % size ? 1 : 0);
  const begin = Array.from({ length: rank }, (_, r) => count(r)).reduce((a, b) => a + b, 0);
  return [2 * begin, 2 * (begin + count(rank))] as const;
};

/** What a call gives a rank, of what all have, and whether it is in place. */
const CALLS: Readonly<
  Record<string, [(c: Communicator, x: Tensor) => Promise<Tensor>, (all: Numbers[], rank: number) => Numbers, boolean]>
> = {
  broadcast: [(c, x) => c.broadcast(x, c.size - 1), (all) => all.at(-1)!, true],
  sum: [(c, x) => c.allReduce(x), sum, true],
  min: [(c, x) => c.allReduce(x, "min"), (all) => all[0]!.map((_, i) => Math.min(...all.map((a) => a[i]!))), true],
  max: [(c, x) => c.allReduce(x, "max"), (all) => all[0]!.map((_, i) => Math.max(...all.map((a) => a[i]!))), true],
  mean: [(c, x) => c.allReduce(x, "mean"), (all) => sum(all).map((x) => x / all.length), true],
  reduceScatter: [
    (c, x) => c.reduceScatter(x),
    (all, rank) => sum(all).slice(...part(all[0]!.length / 2, all.length, rank)),
    false,
  ],
  allGather: [(c, x) => c.allGather(x), (all) => all.flat(), false],
  ring: [
    async (c, x) => {
      if (c.size === 1) return x;
      const before = x.clone();
      await Promise.all([c.send(before, (c.rank + 1) % c.size), c.recv(x, (c.rank + c.size - 1) % c.size)]);
      before.dispose();
      return x;
    },
    (all, rank) => all.at(rank - 1)!,
    true,
  ],
};

const numbers = (x: Tensor) => [...x.dataSync()].map(Number);

it.each<DType>(["bool", "u8", "i32", "f16", "bf16", "f32", "f64"])("%s", async (dtype) => {
  const { device } = zeros([0]);
  const isFloat = !["bool", "u8", "i32"].includes(dtype);
  for (const [name, [call, expected, isInPlace]] of Object.entries(CALLS)) {
    if (dtype === "bool" && !["broadcast", "allGather", "ring"].includes(name)) continue;
    if (!isFloat && name === "mean") continue;
    for (const size of [1, 2, 4])
      for (const rows of [0, 1, 5])
        for (const offset of [0, 3]) {
          const all = Array.from({ length: size }, (_, rank) =>
            Array.from({ length: 2 * rows }, (_, i) => (dtype === "bool" ? (i + rank) % 2 : 4 * ((3 * i + rank) % 5))),
          );
          const tensors = device.memory().tensors;
          await Promise.all(
            memoryRanks(size).map(async (communicator, rank) => {
              const where = `${name} of ${rows} rows at ${offset}, rank ${rank} of ${size}`;
              const own = all[rank]!;
              const edge = Array<number>(offset).fill(1);
              const whole = tidy(() => tensor([...edge, ...own, ...edge], { shape: [2 * (rows + offset)] }).to(dtype));
              const x = whole.alias([rows, 2], offset);
              const result = await call(communicator, x);
              expect(numbers(result), where).toEqual(expected(all, rank));
              expect(numbers(x), where).toEqual(isInPlace ? numbers(result) : own);
              for (const begin of [0, whole.size - offset])
                expect(numbers(whole).slice(begin, begin + offset), where).toEqual(edge);
              result.dispose();
              x.dispose();
              whole.dispose();
            }),
          );
          expect(device.memory().tensors, name).toBe(tensors);
        }
  }
});

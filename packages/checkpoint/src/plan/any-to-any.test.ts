/** From any layout to any layout and back, bytes equal: uneven, strided, replicated and empty shards included. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { random, randomBytes } from "../../testing/fixtures";
import { bytesPerElement, type StoredDType } from "../format/dtype";
import { type Box, elementsIn, subtract, wholeOf } from "../layout/box";
import { type Layout, ranksOf, type TensorLayout } from "../layout/layout";
import { loadCheckpoint } from "../operations";
import { verifyCheckpoint } from "../read/verify";
import { mergeCheckpoint } from "../rewrite/merge";
import { reshardCheckpoint } from "../rewrite/reshard";
import { saveCheckpoint } from "../save/save";

interface Case {
  readonly tensors: readonly { shape: number[]; dtype: StoredDType; seed: number }[];
  readonly layouts: readonly { mesh: number[]; rule: "balanced" | "ceil"; seed: number }[];
}

const dtypes = fc.constantFrom<StoredDType>("F32", "F64", "BF16", "U8", "C64", "F8_E4M3");
const cases: fc.Arbitrary<Case> = fc.record({
  tensors: fc.array(fc.record({ shape: fc.array(fc.nat(7), { maxLength: 4 }), dtype: dtypes, seed: fc.nat(1e6) }), {
    minLength: 1,
    maxLength: 4,
  }),
  layouts: fc.array(
    fc.record({
      mesh: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }),
      rule: fc.constantFrom("balanced" as const, "ceil" as const),
      seed: fc.nat(1e6),
    }),
    { minLength: 3, maxLength: 3 },
  ),
});

/** Cuts the tensor at random and deals the pieces out: strided shards, several boxes a rank, ranks with none. */
function dealtBoxes(shape: readonly number[], ranks: number, next: () => number): TensorLayout {
  const boxes: Box[][] = Array.from({ length: ranks }, () => []);
  let rest = [wholeOf(shape)];
  for (let cut = 0; cut < 5 && rest.length > 0; cut++) {
    const piece = rest[next() % rest.length]!;
    const offset = piece.offset.map((begin, d) => begin + (next() % Math.max(1, piece.size[d]!)));
    const size = offset.map((begin, d) => 1 + (next() % Math.max(1, piece.offset[d]! + piece.size[d]! - begin)));
    if (piece.size.includes(0)) break;
    boxes[next() % ranks]!.push({ offset, size });
    rest = rest.flatMap((one) => subtract(one, [{ offset, size }]));
  }
  for (const piece of rest) boxes[next() % ranks]!.push(piece);
  return { boxes };
}

function layoutOf({ mesh, rule, seed }: Case["layouts"][number], tensors: Case["tensors"]): Layout {
  const next = random(seed);
  const axes = mesh.map((_, i) => `axis${i}`);
  const ranks = mesh.reduce((product, length) => product * length, 1);
  const entryOf = (shape: readonly number[]): TensorLayout => {
    if (next() % 3 === 0 && !shape.includes(0)) return dealtBoxes(shape, ranks, next);
    const free = [...axes];
    return shape.map(() => {
      const taken = free.splice(next() % (free.length + 1), 1 + (next() % 2));
      return taken.length === 0 ? null : taken;
    });
  };
  const entries = tensors.map(({ shape }, i): [string, TensorLayout] => [`t${i}`, entryOf(shape)]);
  return { mesh: { shape: mesh, axes }, tensors: Object.fromEntries(entries), rule };
}

describe("any layout to any layout", () => {
  it("reshard after reshard and merge give the original bytes, and everything verifies", async () => {
    await fc.assert(
      fc.asyncProperty(cases, async ({ tensors, layouts }) => {
        const fileSystem = new MemoryFileSystem();
        const original = Object.fromEntries(
          tensors.map(({ shape, dtype, seed }, i) => {
            return [
              `t${i}`,
              { dtype, shape, data: randomBytes(elementsIn(wholeOf(shape)) * bytesPerElement(dtype), seed) },
            ];
          }),
        );
        const [first, second, third] = layouts.map((layout) => layoutOf(layout, tensors));
        await saveCheckpoint("/a", { step: 3, tensors: original }, { layout: first!, fileSystem });
        // The smallest cap cuts even these tensors into several chunks only when they are large; chunks are tested beside the executor.
        await reshardCheckpoint("/a", "/b", { layout: second!, fileSystem });
        await reshardCheckpoint("/b", "/c", { layout: third!, fileSystem, maxMemory: 65536 });
        await mergeCheckpoint("/c", "/merged.safetensors", { fileSystem });
        for (const path of ["/a", "/b", "/c", "/merged.safetensors"]) {
          expect((await verifyCheckpoint(path, { fileSystem })).problems).toEqual([]);
          const loaded = await loadCheckpoint(path, { fileSystem, as: "plain" });
          expect(Object.keys(loaded.tensors).sort()).toEqual(Object.keys(original).sort());
          for (const [name, { shape, dtype, data }] of Object.entries(original)) {
            expect(loaded.tensors[name]).toMatchObject({ shape, dtype });
            expect(Buffer.compare(loaded.tensors[name]!.data, data)).toBe(0);
          }
        }
        // What each rank of a mesh loads is its slice of the whole.
        const rank = tensors[0]!.seed % ranksOf(second!);
        const own = Object.keys(original).filter((name) => !("boxes" in (second!.tensors[name] as object)));
        const slices = own.length === 0 ? [] : await loadSlices(fileSystem, second!, rank, own);
        for (const { name, offset, shape, data } of slices) {
          const whole = original[name]!;
          const { tensors: again } = await loadCheckpoint("/a", {
            names: [name],
            slices: { [name]: offset.map((begin, d) => [begin, begin + shape[d]!] as const) },
            fileSystem,
            as: "plain",
          });
          expect(again[name]!.wholeShape).toEqual(whole.shape);
          expect(Buffer.compare(again[name]!.data, data)).toBe(0);
        }
      }),
      { seed: 5, numRuns: 60 },
    );
  });
});

async function loadSlices(fileSystem: MemoryFileSystem, layout: Layout, rank: number, names: readonly string[]) {
  const { tensors } = await loadCheckpoint("/c", { layout, rank, names, fileSystem, as: "plain" });
  return Object.entries(tensors).map(([name, { offset, shape, data }]) => ({ name, offset, shape, data }));
}

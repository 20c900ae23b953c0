import fc from "fast-check";
import { expect, it } from "vitest";
import { fileOrder, shardHeader } from "./shard";

it("each box has a key of its own, the first that of its tensor, whatever tensors are called", () => {
  const drawn = fc.dictionary(fc.constantFrom("w", "w#1", "w#2", "w#1#1"), fc.integer({ min: 1, max: 4 }));
  fc.assert(
    fc.property(drawn, (counts) => {
      const boxes = Object.entries(counts)
        .flatMap(([name, count]) =>
          Array.from({ length: count }, (_, i) => ({
            tensor: { name, dtype: "F32" as const },
            box: { offset: [i], size: [1] },
          })),
        )
        .sort(fileOrder);
      const { bytes, begins } = shardHeader(boxes);
      const { __metadata__: _, ...entries } = JSON.parse(new TextDecoder().decode(bytes.subarray(8)));
      const keys = boxes.map((_, i) =>
        Object.keys(entries).find((key) => entries[key].data_offsets[0] === begins[i]! - begins[0]!),
      );
      expect(new Set(keys).size).toBe(boxes.length);
      for (const [i, { tensor, box }] of boxes.entries()) if (box.offset[0] === 0) expect(keys[i]).toBe(tensor.name);
    }),
    { seed: 1 },
  );
});

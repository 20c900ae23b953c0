/** Prepared launches: they do what launches do one by one, wherever open memory is now, with the scalars of the run. */
import { add, defineRule, mul } from "@opt/core";
import type { Launch, Memory, Slice } from "@opt/core/backend";
import { describe, expect, it } from "vitest";
import type { ContractContext } from "./context";

const LENGTH = 5;
const BLEND = /* @__PURE__ */ defineRule({
  name: "blend",
  buffers: ["param", "grad"],
  scalars: ["keep", "weight"],
  update: ({ param, grad }, { keep, weight }) => ({ param: add(mul(keep, param), mul(weight, grad)) }),
});

export function preparedContract(context: ContractContext): void {
  describe("prepared launches", () => {
    it.for(Array.from({ length: 16 }, (_, open) => open))("follow open memory, set %d", async (set, test) => {
      const { backend } = context;
      if (backend.prepare === undefined) return test.skip("it prepares nothing");
      const Numbers = context.dtype === "f64" ? Float64Array : Float32Array;
      const made: Memory[] = [];
      const place = (values: readonly number[], before = 0): Slice => {
        const array = Numbers.from([...new Array(before).fill(7), ...values]);
        const memory = backend.allocate(array.byteLength);
        made.push(memory);
        backend.write(memory, 0, new Uint8Array(array.buffer));
        return { memory, byteOffset: before * array.BYTES_PER_ELEMENT, length: values.length };
      };
      const read = async ({ memory, byteOffset, length }: Slice) => {
        const bytes = await backend.read(memory, byteOffset, length * Numbers.BYTES_PER_ELEMENT);
        return [...new Numbers(bytes.slice().buffer)];
      };
      const values = (round: number) => [[1, 2, 3, 4, 5].map((x) => x * round), [5, 4, 3, 2, round], [round / 2]];
      const slices = [...values(1), new Array<number>(LENGTH).fill(0)].map((list) => place(list));
      const [param, grad, weight, target] = slices as [Slice, Slice, Slice, Slice];
      const strides = { shape: [LENGTH], sourceStrides: [1], targetStrides: [1] };
      const { dtype } = context;
      const rule = context.kernel({ kind: "rule", rule: BLEND, dtype });
      const copy = context.kernel({ kind: "copy", from: dtype, to: dtype });
      const launches: Launch[] = [
        { kind: "rule", kernel: rule, tensors: [[param, grad]], scalars: [2, weight] },
        { kind: "copy", kernel: copy, source: param, target, ...strides },
      ];
      const open = slices.filter((_, i) => set & (1 << i));
      const list = backend.prepare(
        launches,
        open.map(({ memory }) => memory),
      );
      for (const round of [1, 2, 3]) {
        const given = [...values(round), new Array<number>(LENGTH).fill(0)];
        const now = slices.map((slice, i) => {
          if (open.includes(slice)) return place(given[i]!, 8 * round);
          backend.write(slice.memory, 0, new Uint8Array(Numbers.from(given[i]!).buffer));
          return slice;
        });
        const places = now.filter((_, i) => open.includes(slices[i]!));
        list.run(new Map([[0, [round, weight]]]), places);
        const expected = given[0]!.map((x, i) => round * x + given[2]![0]! * given[1]![i]!);
        expect([await read(now[0]!), await read(now[3]!)]).toEqual([expected, expected]);
      }
      list.dispose();
      for (const memory of made) backend.free(memory);
    });
  });
}

/** Rows added up by index. Each thread owns rows of the output and goes through all indices, so that sums keep their order. */
import type { Spec } from "@opt/core/backend";
import { i32, ModuleBuilder, memory } from "../assembler";
import type { KernelSource, Target } from "../kernel";
import { floatOf } from "./float";
import { walkRow } from "./row";

function emit({ dtype }: Spec<"scatterAdd">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { vector, bytes } = float;
  const module = new ModuleBuilder(target);
  module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32", "i32", "i32"], export: "rows" },
    (f, start, end, source, indices, output, width, count) => {
      const i = f.local("i32");
      const rowBytes = f.local("i32", i32.mul(width, bytes));
      const owned = f.local("i32", i32.sub(end, start));
      f.do(memory.fill(i32.add(output, i32.mul(start, rowBytes)), 0, i32.mul(owned, rowBytes)));
      f.for(i, 0, count, 1, () => {
        const row = f.local("i32", i32.load(i32.add(indices, i32.mul(i, 4))));
        // Unsigned: rows before `start` and negative ones wrap to large numbers.
        f.if(i32.ltU(i32.sub(row, start), owned), () => {
          const from = i32.add(source, i32.mul(i, rowBytes));
          const to = i32.add(output, i32.mul(row, rowBytes));
          walkRow(f, float, [from, to], width, ({ load, store }, at, put) =>
            store(put, vector.add(load(put), load(at))),
          );
        });
      });
    },
  );
  return module;
}

export const scatterAdd: KernelSource<"scatterAdd"> = {
  emit,
  launch({ source, indices, output, rows, width, count }, execution) {
    execution.run("rows", { range: rows, work: count * width }, source, indices, output, width, count);
  },
};

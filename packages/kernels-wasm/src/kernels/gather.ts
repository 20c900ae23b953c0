/** Rows of a table by index. */
import type { Spec } from "@opt/core/backend";
import { i32, ModuleBuilder, memory } from "../assembler";
import type { KernelSource, Target } from "../kernel";
import { floatOf } from "./float";
import { walkRow } from "./row";

/** Rows from this many bytes on are copied by memory.copy. */
const LONG_ROW = 512;

function emit({ dtype }: Spec<"gather">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const { vector, scalar, bytes } = float;
  const module = new ModuleBuilder(target);
  module.items("rows", ["i32", "i32", "i32", "i32", "i32"], (f, i, table, indices, output, rows, width) => {
    const rowBytes = f.local("i32", i32.mul(width, bytes));
    const to = f.local("i32", i32.add(output, i32.mul(i, rowBytes)));
    const row = f.local("i32", i32.load(i32.add(indices, i32.mul(i, 4))));
    const from = f.local("i32", i32.add(table, i32.mul(row, rowBytes)));
    const outOfRange = () => {
      const nan = vector.splat(scalar.const(Number.NaN));
      walkRow(f, float, [to], width, ({ store }, put) => store(put, nan));
    };
    const short = () => walkRow(f, float, [from, to], width, ({ load, store }, at, put) => store(put, load(at)));
    f.if(i32.geU(row, rows), outOfRange, () => {
      f.if(i32.geU(rowBytes, LONG_ROW), () => f.do(memory.copy(to, from, rowBytes)), short);
    });
  });
  return module;
}

export const gather: KernelSource<"gather"> = {
  emit,
  launch({ table, indices, output, rows, width, count }, execution) {
    execution.run("rows", { range: count, work: count * width }, table, indices, output, rows, width);
  },
};

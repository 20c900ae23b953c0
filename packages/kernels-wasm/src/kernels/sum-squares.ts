/** Sum of squares of each tensor of a list: segments of all tensors are shared out, their sums added up per tensor. */
import { byteSize, type Spec } from "@opt/core/backend";
import { f64, i32, ModuleBuilder } from "../assembler";
import type { KernelSource, Target } from "../kernel";
import { emitFold, narrow } from "./block";
import { floatOf } from "./float";

const SEGMENT = 65_536;

function emit({ dtype, stored, nonFinite }: Spec<"sumSquares">, target: Target): ModuleBuilder {
  const float = floatOf(dtype);
  const module = new ModuleBuilder({ shared: target.shared });
  const squares = emitFold(module, float, nonFinite ? "nonFinite" : "squares", stored);

  // `segments` holds an address and a count for each item.
  module.function(
    { parameters: ["i32", "i32", "i32", "i32"], export: "segments" },
    (f, start, end, segments, partials) => {
      const item = f.local("i32");
      f.for(item, start, end, 1, () => {
        const segment = f.local("i32", i32.add(segments, i32.mul(item, 8)));
        const sum = squares(i32.load(segment), i32.load(segment, 4));
        f.do(f64.store(i32.add(partials, i32.mul(item, 8)), sum));
      });
    },
  );

  // Tensor t owns the partial sums firsts[t] to firsts[t + 1].
  module.function(
    { parameters: ["i32", "i32", "i32", "i32", "i32"], export: "combine" },
    (f, start, end, firsts, partials, output) => {
      const tensor = f.local("i32");
      const item = f.local("i32");
      f.for(tensor, start, end, 1, () => {
        const total = f.local("f64", 0);
        const first = f.local("i32", i32.add(firsts, i32.mul(tensor, 4)));
        const last = f.local("i32", i32.load(first, 4));
        f.for(item, i32.load(first), last, 1, () => {
          f.set(total, f64.add(total, f64.load(i32.add(partials, i32.mul(item, 8)))));
        });
        f.do(float.scalar.store(i32.add(output, i32.mul(tensor, float.bytes)), narrow(float, total)));
      });
    },
  );
  return module;
}

export const sumSquares: KernelSource<"sumSquares"> = {
  emit,
  launch({ kernel, inputs, output }, execution) {
    if (inputs.length === 0) return;
    const { dtype, stored = dtype } = kernel.spec;
    const bytes = byteSize(stored);
    const segments: number[] = [];
    const firsts = [0];
    let work = 0;
    for (const input of inputs) {
      const address = execution.address(input);
      for (let i = 0; i < input.length; i += SEGMENT) {
        segments.push(address + i * bytes, Math.min(SEGMENT, input.length - i));
      }
      firsts.push(segments.length / 2);
      work += input.length;
    }
    const range = segments.length / 2;
    const partials = execution.scratch(8 * range);
    execution.run("segments", { range, work }, execution.table(segments), partials);
    execution.run(
      "combine",
      { range: inputs.length, work: range },
      execution.table(firsts),
      partials,
      execution.address(output),
    );
  },
};

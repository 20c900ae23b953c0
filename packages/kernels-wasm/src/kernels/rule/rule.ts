/** Optimizer updates: one pass over all tensors of a launch, cut into parts of whole cache lines whatever the tensors' sizes. */
import {
  type ComputeDType,
  DIVISOR_REACH,
  type Launch,
  multipliedRoots,
  type Program,
  type Slice,
  type Spec,
  type StoredFormats,
  withMirror,
} from "@opt/core/backend";
import { f64, i32, type Local, ModuleBuilder } from "../../assembler";
import { LANES } from "../../emit/lanes";
import { emitOperations } from "../../emit/operations";
import { ProgramWriter } from "../../emit/program";
import { accessIn } from "../../emit/stored";
import type { Execution, KernelSource, Target } from "../../kernel";

/** Tensors are laid out on one line of elements on which each begins at a multiple of this, so parts begin where cache lines do. */
const GRAIN = 32;

/** Vectors per turn of the main loop. */
const UNROLL = 4;

/** Words of the table per tensor: its first position on the line, its length, its slices' addresses. */
const FIRST = 0;
const LENGTH = 1;
const ADDRESSES = 2;

/** Buffers that are stored element by element. */
const plain: KernelSource<"rule"> = {
  emit: ({ rule, dtype, stored }, target) => emitRule(withMirror(rule.program, stored), dtype, target, stored),
  launch: launchRule,
};

/** What `enableQ8` and `enableStochasticRounding` put beside: the first that fits a spec is taken. */
export const further: ((spec: Spec<"rule">) => KernelSource<"rule"> | false)[] = [];

function sourceOf(spec: Spec<"rule">): KernelSource<"rule"> {
  for (const find of further) {
    const found = find(spec);
    if (found) return found;
  }
  return plain;
}

export const rule: KernelSource<"rule"> = {
  emit: (spec, target) => sourceOf(spec).emit(spec, target),
  launch: (launch: Launch<"rule">, execution) => sourceOf(launch.kernel.spec).launch(launch, execution),
};

/** Exports `run(start, end, table, tensors, ...scalars)` over positions on the line. */
function emitRule(program: Program, dtype: ComputeDType, target: Target, stored?: StoredFormats): ModuleBuilder {
  const lanes = LANES[dtype];
  const module = new ModuleBuilder(target);
  const { program: faster, divisors } = multipliedRoots(program);
  const isFaster = dtype === "f32" && target.fused.f32 && divisors.length > 0;
  const operations = emitOperations(module, isFaster ? faster : program, dtype, target);
  const slots = program.buffers.map((_, slot) => slot);
  const words = ADDRESSES + slots.length;
  const scalarTypes = program.scalars.map(() => "f64" as const);
  const parameters = ["i32", "i32", "i32", "i32", ...scalarTypes] as const;
  module.function({ parameters, export: "run" }, (f, start, end, table, tensors, ...scalars) => {
    const pointers = slots.map(() => f.local("i32"));
    const access = slots.map((slot) => accessIn(f, dtype, stored?.[slot], pointers, scalars));
    const remaining = f.local("i32");
    const row = (index: Local<"i32">) => i32.add(table, i32.mul(index, 4 * words));

    const updateBy = (by: Program) => {
      const writer = new ProgramWriter(f, by, dtype, operations, scalars);
      return () => {
        for (const elements of [UNROLL * lanes.count, lanes.count, 1]) {
          const isOne = elements === 1;
          f.while(i32.geU(remaining, elements), () => {
            for (let first = 0; first < elements; first += lanes.count) {
              const outputs = writer.element((slot) => {
                const [each, pointer] = [access[slot]!, pointers[slot]!];
                return isOne ? each.loadOne(pointer) : each.load(pointer, first * each.bytes);
              });
              program.outputs.forEach(({ slot }, i) => {
                const [each, pointer] = [access[slot]!, pointers[slot]!];
                f.do(
                  isOne ? each.storeOne(pointer, outputs[i]!) : each.store(pointer, outputs[i]!, first * each.bytes),
                );
              });
            }
            for (const [slot, pointer] of pointers.entries()) f.increase(pointer, elements * access[slot]!.bytes);
            f.decrease(remaining, elements);
          });
        }
      };
    };
    const updateAll = updateBy(program);
    const isInReach = (slot: number) => f64.lt(f64.abs(f64.sub(scalars[slot]!, 1)), DIVISOR_REACH);
    const updateFaster = isFaster ? updateBy(faster) : updateAll;

    // The tensor in which the part starts, by bisection.
    const low = f.local("i32");
    const high = f.local("i32", tensors);
    const middle = f.local("i32");
    f.while(i32.gtU(i32.sub(high, low), 1), () => {
      f.set(middle, i32.shrU(i32.add(low, high), 1));
      f.if(
        i32.leU(i32.load(row(middle), 4 * FIRST), start),
        () => f.set(low, middle),
        () => f.set(high, middle),
      );
    });

    const tableEnd = f.local("i32", row(tensors));
    const [entry, first, skip] = [f.local("i32"), f.local("i32"), f.local("i32")];
    f.for(entry, row(low), tableEnd, 4 * words, () => {
      f.set(first, i32.load(entry, 4 * FIRST));
      f.if(i32.geU(first, end), () => f.return());
      f.set(skip, 0);
      f.if(i32.ltU(first, start), () => f.set(skip, i32.sub(start, first)));
      const stop = f.least(i32.load(entry, 4 * LENGTH), i32.sub(end, first));
      f.if(i32.ltU(skip, stop), () => {
        f.set(remaining, i32.sub(stop, skip));
        for (const [slot, pointer] of pointers.entries()) {
          const address = i32.load(entry, 4 * (ADDRESSES + slot));
          f.set(pointer, i32.add(address, i32.mul(skip, access[slot]!.bytes)));
        }
        if (isFaster) f.if(divisors.map(isInReach).reduce(i32.and), updateFaster, updateAll);
        else updateAll();
      });
    });
  });
  return module;
}

/** A list of tensors on the line, as the kernel reads it. */
interface Line {
  readonly table: Int32Array;
  readonly tensors: number;
  readonly length: number;
}

/** A list is laid out once: an optimizer launches the same one again while its gradients stay where they are. */
const lines = new WeakMap<Launch<"rule">["tensors"], Line>();

function lineOf(tensors: Launch<"rule">["tensors"], execution: Execution): Line {
  const table: number[] = [];
  let length = 0;
  let count = 0;
  for (const slices of tensors) {
    const elements = (slices[0] as Slice).length;
    if (elements === 0) continue;
    table.push(length, elements);
    for (const slice of slices) table.push(execution.address(slice));
    length += Math.ceil(elements / GRAIN) * GRAIN;
    count++;
  }
  return { table: Int32Array.from(table), tensors: count, length };
}

function launchRule({ kernel, tensors, scalars }: Launch<"rule">, execution: Execution): void {
  let line = lines.get(tensors);
  if (line === undefined) {
    line = lineOf(tensors, execution);
    lines.set(tensors, line);
  }
  if (line.tensors === 0) return;
  const work = line.length * (tensors[0] as readonly Slice[]).length;
  const values = scalars.map((scalar) => execution.scalar(scalar, kernel.spec.dtype));
  const table = execution.table(line.table);
  execution.run("run", { range: line.length, grain: GRAIN, work }, table, line.tensors, ...values);
}

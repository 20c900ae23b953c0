/**
 * Updates of which some buffers are packed in blocks. A block of codes is computed twice: first for its scales, then to be stored,
 * because its codes wait for its largest value and nothing but memory of the launch could hold it.
 */
import type { StoredFormats } from "@opt/core/backend";
import {
  blockBytes,
  type CodedDType,
  codebookOf,
  isPacked,
  type Launch,
  LEAST_SCALE,
  PACKED_BLOCK,
  type PackedDType,
  type Program,
  packedHead,
  withMirror,
} from "@opt/core/backend";
import {
  type FunctionBuilder,
  f32x4,
  i8x16,
  i32,
  i32x4,
  type Local,
  ModuleBuilder,
  shuffle32,
  type Value,
  v128,
} from "../../assembler";
import { emitOperations } from "../../emit/operations";
import { ProgramWriter } from "../../emit/program";
import { type Access, accessIn } from "../../emit/stored";
import type { Execution, KernelSource, Target } from "../../kernel";
import { CorrectedBuffer } from "./corrected";

type Vector = Value<"v128">;

const FORMATS: readonly CodedDType[] = ["q8", "uq8"];

/** Words of the table per tensor: its first position on the line, its length, its slices' addresses. */
const [FIRST, LENGTH, ADDRESSES] = [0, 1, 2] as const;

/** The values of all codes, of one format after the other. */
function valueTables(): Int32Array {
  const values = Float32Array.from(FORMATS.flatMap((format) => [...codebookOf(format).values]));
  return new Int32Array(values.buffer);
}

const everywhere = (value: number) => f32x4.const([value, value, value, value]);

/** A buffer of codes inside of a function. */
class CodedBuffer implements Access {
  readonly bytes = 1;
  readonly #scale: Local<"v128">;
  private readonly high: Local<"v128">;
  private readonly low: Local<"v128">;
  readonly #newScale: Local<"v128">;
  readonly #inverse: Local<"v128">;

  constructor(
    private readonly f: FunctionBuilder,
    private readonly format: CodedDType,
    private readonly values: Local<"i32">,
  ) {
    this.#scale = f.local("v128");
    this.high = f.local("v128");
    this.low = f.local("v128");
    this.#newScale = f.local("v128");
    this.#inverse = f.local("v128");
  }

  private get signed(): boolean {
    return this.format === "q8";
  }

  #constant(value: number): Vector {
    return this.f.constant(everywhere(value));
  }

  /** Before a block, at the address of its scale. */
  begin(address: Value<"i32">): void {
    const { f } = this;
    f.set(this.#scale, v128.load32Splat(address));
    f.set(this.high, this.#constant(0));
    f.set(this.low, this.#constant(0));
  }

  load(address: Value<"i32">, offset: number): Vector {
    const table = FORMATS.indexOf(this.format) * 1024;
    const place = (lane: number) => i32.add(this.values, i32.shl(i32.load8U(address, offset + lane), 2));
    let codes: Vector = v128.load32Zero(place(0), table);
    for (let lane = 1; lane < 4; lane++) codes = v128.load32Lane(place(lane), codes, lane, table);
    return f32x4.mul(codes, this.#scale);
  }

  loadOne(address: Value<"i32">): Vector {
    const table = FORMATS.indexOf(this.format) * 1024;
    return f32x4.mul(v128.load32Zero(i32.add(this.values, i32.shl(i32.load8U(address), 2)), table), this.#scale);
  }

  /** What is not finite counts as 0. */
  #finite(value: Vector): Local<"v128"> {
    const { f } = this;
    const x = f.local("v128", value);
    f.set(x, v128.and(x, f32x4.lt(f32x4.abs(x), this.#constant(Number.POSITIVE_INFINITY))));
    return x;
  }

  /** Takes values into the block's largest: of all lanes or the first. */
  measure(value: Vector, isOne: boolean): void {
    const { f } = this;
    const first = f.constant(i32x4.const([-1, 0, 0, 0]));
    const x = this.#finite(isOne ? v128.and(value, first) : value);
    f.set(this.high, f32x4.pmax(this.high, x));
    f.set(this.low, f32x4.pmin(this.low, x));
  }

  measured(): void {
    const { f, high, low } = this;
    for (const lanes of [
      [2, 3, 0, 1],
      [1, 0, 3, 2],
    ]) {
      f.set(high, f32x4.pmax(high, shuffle32(high, high, lanes)));
      f.set(low, f32x4.pmin(low, shuffle32(low, low, lanes)));
    }
    const extreme = f.local("v128", v128.bitselect(high, low, f32x4.ge(high, f32x4.neg(low))));
    const large = f32x4.ge(f32x4.abs(extreme), this.#constant(LEAST_SCALE));
    f.set(this.#newScale, v128.and(this.signed ? f32x4.neg(extreme) : extreme, large));
    const isSome = f32x4.ne(this.#newScale, this.#constant(0));
    f.set(this.#inverse, v128.and(f32x4.div(this.#constant(1), this.#newScale), isSome));
  }

  #codes(value: Vector): Local<"v128"> {
    const { f, signed } = this;
    const { edges, slope, offset, cap } = codebookOf(this.format);
    const x = f.local("v128", f32x4.mul(this.#finite(value), this.#inverse));
    const magnitude = f.local("v128", signed ? f32x4.abs(x) : f32x4.max(x, this.#constant(0)));
    const segment = [slope, offset, cap].map((table) => ({ table, local: f.local("v128", this.#constant(table[0]!)) }));
    const above = f.local("v128");
    edges.forEach((edge, e) => {
      f.set(above, f32x4.ge(magnitude, this.#constant(edge)));
      for (const { table, local } of segment) f.set(local, v128.bitselect(this.#constant(table[e + 1]!), local, above));
    });
    const [slopes, offsets, caps] = segment;
    const line = f32x4.add(f32x4.mul(magnitude, slopes!.local), offsets!.local);
    const place = f32x4.min(line, caps!.local);
    // In the lowest bits of 2^23 and more stands the whole number that was added.
    const whole = f32x4.add(f32x4.floor(place), this.#constant(2 ** 23));
    const n = f.local("v128", v128.and(whole, f.constant(i32x4.const([511, 511, 511, 511]))));
    if (!signed) return n;
    const negative = f.local("v128", i32x4.shrS(x, 31));
    f.set(n, i32x4.sub(v128.xor(n, negative), negative));
    f.set(n, i32x4.add(n, i32x4.eq(n, f.constant(i32x4.const([128, 128, 128, 128])))));
    return n;
  }

  store(address: Value<"i32">, value: Vector, offset: number) {
    const codes = this.#codes(value);
    const bytes = i8x16.shuffle(codes, codes, [0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12, 0, 4, 8, 12]);
    return v128.store32Lane(address, bytes, 0, offset);
  }

  storeOne(address: Value<"i32">, value: Vector) {
    return i32.store8(address, i32x4.extractLane(this.#codes(value), 0));
  }

  /** After a block. */
  end(address: Value<"i32">): void {
    this.f.do(v128.store32Lane(address, this.#newScale, 0));
  }
}

/** Exports `run(start, end, table, tensors, ...scalars, values)`, of which parts begin at blocks. */
function emitPackedRule(program: Program, target: Target, stored: StoredFormats): ModuleBuilder {
  const module = new ModuleBuilder(target);
  const operations = emitOperations(module, program, "f32", target);
  const slots = program.buffers.map((_, slot) => slot);
  const scalarTypes = program.scalars.map(() => "f64" as const);
  const parameters = ["i32", "i32", "i32", "i32", ...scalarTypes, "i32"] as const;
  module.function({ parameters, export: "run" }, (f, start, end, table, tensors, ...rest) => {
    const scalars = rest.slice(0, -1) as Local<"f64">[];
    const values = rest.at(-1) as Local<"i32">;
    const writer = new ProgramWriter(f, program, "f32", operations, scalars);
    const pointers = slots.map(() => f.local("i32"));
    const moving = slots.map(() => f.local("i32"));
    const access = slots.map((slot): Access => {
      const format = stored[slot]!;
      if (format === "bf16x") return new CorrectedBuffer(f, pointers[slot]!);
      return isPacked(format) ? new CodedBuffer(f, format, values) : accessIn(f, "f32", format, moving, scalars);
    });
    const packedAs = slots.map((slot): PackedDType | undefined => {
      const format = stored[slot];
      return isPacked(format) ? format : undefined;
    });
    const written = program.outputs.flatMap(({ slot }) => {
      const buffer = access[slot];
      return buffer instanceof CodedBuffer ? [{ slot, buffer }] : [];
    });
    const [remaining, count, left] = [f.local("i32"), f.local("i32"), f.local("i32")];

    const pass = (use: (slot: number, output: Local<"v128">, isOne: boolean) => void) => {
      f.set(left, count);
      for (const slot of slots)
        f.set(moving[slot]!, i32.add(pointers[slot]!, packedAs[slot] ? packedHead(packedAs[slot]) : 0));
      const over = (elements: number) => {
        const isOne = elements === 1;
        f.while(i32.geU(left, elements), () => {
          const outputs = writer.element((slot) =>
            isOne ? access[slot]!.loadOne(moving[slot]!) : access[slot]!.load(moving[slot]!, 0),
          );
          for (const [i, { slot }] of program.outputs.entries()) use(slot, outputs[i]!, isOne);
          for (const slot of slots) f.increase(moving[slot]!, elements * access[slot]!.bytes);
          f.decrease(left, elements);
        });
      };
      over(4);
      over(1);
    };
    const updateBlock = () => {
      f.set(count, f.least(remaining, PACKED_BLOCK));
      for (const [slot, each] of access.entries()) if (each instanceof CodedBuffer) each.begin(pointers[slot]!);
      const measure = (slot: number, output: Local<"v128">, isOne: boolean) => {
        const each = access[slot]!;
        if (each instanceof CodedBuffer) each.measure(output, isOne);
      };
      if (written.length > 0) pass(measure);
      for (const { buffer } of written) buffer.measured();
      pass((slot, output, isOne) => {
        const [each, at] = [access[slot]!, moving[slot]!];
        f.do(isOne ? each.storeOne(at, output) : each.store(at, output, 0));
      });
      for (const { slot, buffer } of written) buffer.end(pointers[slot]!);
      for (const slot of slots) {
        f.increase(pointers[slot]!, packedAs[slot] ? blockBytes(packedAs[slot]) : i32.mul(count, access[slot]!.bytes));
      }
      f.decrease(remaining, count);
    };

    // Of all tensors those that the part has something of: they are long, and so few.
    const bytes = 4 * (ADDRESSES + slots.length);
    const row = f.local("i32");
    const tableEnd = f.local("i32", i32.add(table, i32.mul(tensors, bytes)));
    const [skip, stop] = [f.local("i32"), f.local("i32")];
    f.for(row, table, tableEnd, bytes, () => {
      const first = i32.load(row, 4 * FIRST);
      f.set(skip, i32.sub(start, first));
      f.if(i32.geU(first, start), () => f.set(skip, 0));
      f.set(stop, 0);
      f.if(i32.ltU(first, end), () => f.set(stop, f.least(i32.load(row, 4 * LENGTH), i32.sub(end, first))));
      f.if(i32.ltU(skip, stop), () => {
        for (const [slot, pointer] of pointers.entries()) {
          const before = packedAs[slot]
            ? i32.mul(i32.shrU(skip, 8), blockBytes(packedAs[slot]))
            : i32.mul(skip, access[slot]!.bytes);
          f.set(pointer, i32.add(i32.load(row, 4 * (ADDRESSES + slot)), before));
        }
        f.set(remaining, i32.sub(stop, skip));
        f.while(remaining, updateBlock);
      });
    });
  });
  return module;
}

/** Updates of which some buffers are packed. */
export const packedRule: KernelSource<"rule"> = {
  emit: ({ rule, stored }, target) => emitPackedRule(withMirror(rule.program, stored), target, stored!),

  launch({ kernel, tensors, scalars }: Launch<"rule">, execution: Execution): void {
    const rows: number[] = [];
    let length = 0;
    for (const slices of tensors) {
      const elements = slices[0]!.length;
      rows.push(length, elements, ...slices.map((slice) => execution.address(slice)));
      length += Math.ceil(elements / PACKED_BLOCK) * PACKED_BLOCK;
    }
    if (length === 0) return;
    const numbers = scalars.map((scalar) => execution.scalar(scalar, kernel.spec.dtype));
    const work = length * tensors[0]!.length;
    const table = execution.table(rows);
    const values = execution.table(valueTables());
    execution.run("run", { range: length, grain: PACKED_BLOCK, work }, table, tensors.length, ...numbers, values);
  },
};

/**
 * Updates whose parameters are rounded at random. To their kernels what is drawn looks like three more buffers, whose addresses are
 * numbers: the element's, which moves by one, and those of its tensor and of the keys, which stay.
 */
import {
  DRAW_FACTORS,
  isRandom,
  type Launch,
  type Rule,
  type Slice,
  type Spec,
  type StoredFormats,
} from "@opt/core/backend";
import {
  type FunctionBuilder,
  f32x4,
  i16x8,
  i32,
  i32x4,
  type Local,
  type Operand,
  truncF32x4,
  type Value,
  v128,
} from "../../assembler";
import { type Access, type AccessOf, accessTo } from "../../emit/stored";
import type { Execution, KernelSource } from "../../kernel";
import { rule } from "./rule";

type Vector = Value<"v128">;

const all = (f: FunctionBuilder, word: number) => f.constant(i32x4.const([word, word, word, word]));

/** The upper half, by 16 random bits; a NaN stays one. */
function toBf16(f: FunctionBuilder, value: Vector, draw: Vector): Vector {
  const bits = f.local("v128", value);
  const rounded = i32x4.shrU(i32x4.add(bits, draw), 16);
  const nan = v128.or(i32x4.shrU(bits, 16), all(f, 0x40));
  return f.local("v128", v128.bitselect(nan, rounded, f32x4.ne(bits, bits)));
}

/** In 2^-16 parts of the gap: of normals, and of what is below 2^-14, whose whole parts stand in the lowest bits of 2^23 and more. */
function toHalf(f: FunctionBuilder, value: Vector, draw: Vector): Vector {
  const bits = f.local("v128", value);
  const magnitude = f.local("v128", v128.and(bits, all(f, 0x7fffffff)));
  const normal = i32x4.shl(i32x4.sub(magnitude, all(f, 0x38000000)), 3);
  const isSmall = f.local("v128", i32x4.gtS(all(f, 0x38800000), magnitude));
  const small = truncF32x4(
    f32x4.mul(v128.and(magnitude, isSmall), f.constant(f32x4.const(new Array<number>(4).fill(2 ** 40)))),
  );
  const parts = v128.bitselect(small, normal, isSmall);
  const finite = i32x4.shrU(i32x4.add(parts, draw), 16);
  const infinite = v128.bitselect(all(f, 0x7e00), all(f, 0x7c00), f32x4.ne(bits, bits));
  const staysFinite = i32x4.gtS(all(f, 0x47800000), magnitude);
  const sign = i32x4.shl(i32x4.shrU(bits, 31), 15);
  return f.local("v128", v128.or(v128.bitselect(finite, infinite, staysFinite), sign));
}

/** 16 random bits for each of four elements from the first pointer's on (core's rule/rounding.ts). */
function drawn(f: FunctionBuilder, [place, parameter]: readonly Local<"i32">[], offset: number): Vector {
  const lanes = i32x4.const([offset, offset + 1, offset + 2, offset + 3]);
  const x = f.local("v128", i32x4.add(i32x4.splat(place!), f.constant(lanes)));
  f.set(x, i32x4.mul(v128.xor(x, i32x4.shrU(x, 16)), all(f, DRAW_FACTORS.first)));
  f.set(x, i32x4.add(v128.xor(x, i32x4.shrU(x, 15)), i32x4.splat(parameter!)));
  return i32x4.shrU(i32x4.mul(v128.xor(x, i32x4.shrU(x, 15)), all(f, DRAW_FACTORS.second)), 16);
}

function roundedAs(format: "bf16" | "f16"): AccessOf {
  return (f, pointers, scalars) => {
    const [first, second] = scalars.slice(-2).map((key) => f.local("i32", i32.truncSatF64S(key)));
    const [place, parameter] = pointers.slice(-2);
    const here = [f.local("i32"), f.local("i32")] as const;
    const draw = (offset: number) => {
      f.set(here[0], i32.add(place!, first!));
      f.set(here[1], i32.add(parameter!, second!));
      return drawn(f, here, offset);
    };
    const narrow = format === "bf16" ? toBf16 : toHalf;
    return {
      ...accessTo(f, "f32", format),
      store(address: Operand<"i32">, value: Vector, offset: number) {
        const bits = narrow(f, value, draw(offset / 2));
        return v128.store64Lane(address, i16x8.narrowI32x4U(bits, bits), 0, offset);
      },
      storeOne: (address: Operand<"i32">, value: Vector) =>
        i32.store16(address, i32x4.extractLane(narrow(f, value, draw(0)), 0)),
    };
  };
}

/** A buffer that is nowhere: its pointer moves by so much an element. */
const moving =
  (bytes: number): AccessOf =>
  (f): Access => ({ ...accessTo(f, "f32"), bytes });

/** Made when it is asked for: bundles drop a function that nobody calls. */
export const randomAccess = (): Readonly<Record<string, AccessOf>> => ({
  bf16r: roundedAs("bf16"),
  f16r: roundedAs("f16"),
  place: moving(1),
  parameter: moving(0),
});

/** The slices of a tensor, and what is drawn for it as more of them. */
function withDraws(slices: readonly Slice[]): readonly Slice[] {
  const { memory, length, place = 0 } = slices[0]!;
  const numbers = [place, Math.imul(Math.floor(place / 2 ** 32), DRAW_FACTORS.parameter)];
  return [...slices, ...numbers.map((number) => ({ memory, byteOffset: number | 0, length, isNumber: true }))];
}

const lists = new WeakMap<Launch<"rule">["tensors"], Launch<"rule">["tensors"]>();

/** The spec whose rule has what is drawn among its buffers and scalars. */
function specWithDraws(spec: Spec<"rule">): Spec<"rule"> {
  const { program } = spec.rule;
  const buffers = [...program.buffers, "place_", "parameter_"];
  const scalars = [...program.scalars, "first_", "second_"];
  const stored = [...spec.stored!, "place", "parameter"] as unknown as StoredFormats;
  return { ...spec, rule: { ...spec.rule, program: { ...program, buffers, scalars } } as Rule, stored };
}

/** Of parameters that are rounded at random. */
export const randomRule: KernelSource<"rule"> = {
  emit: (spec, target) => rule.emit(specWithDraws(spec), target),

  launch(launch: Launch<"rule">, execution: Execution): void {
    const { kernel, tensors } = launch;
    let drawn = lists.get(tensors);
    if (drawn === undefined) {
      drawn = tensors.map(withDraws);
      lists.set(tensors, drawn);
    }
    rule.launch(
      { ...launch, kernel: { ...kernel, spec: specWithDraws(kernel.spec) }, tensors: drawn },
      {
        address: (slice) => ("isNumber" in slice ? slice.byteOffset : execution.address(slice)),
        scalar: (scalar, dtype) => execution.scalar(scalar, dtype),
        scratch: (bytes) => execution.scratch(bytes),
        table: (words) => execution.table(words),
        run: (entry, split, ...args) => execution.run(entry, split, ...args),
      },
    );
  },
};

/** True for specs as core makes them, before what is drawn is among their buffers. */
export function isDrawn({ rule, stored }: Spec<"rule">): boolean {
  return isRandom(stored?.[0]) && stored!.length === rule.buffers.length;
}

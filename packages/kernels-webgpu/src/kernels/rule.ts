/** Optimizer updates: one dispatch for a whole group of parameters. */
import {
  blockBytes,
  isPacked,
  isRandom,
  type Launch,
  PACKED_BLOCK,
  type PackedDType,
  type Program,
  packedBytes,
  type Slice,
  type Spec,
  type StoredFormats,
  withMirror,
  withoutDraws,
} from "@opt/core/backend";
import { renamed } from "../emit/names";
import { writeProgram } from "../emit/program";
import type { Execution, KernelSource, Target } from "../kernel";
import type { Shader } from "../shader/shader";
import { conversionsOf, readStored } from "./convert";
import { keepPacked, overPackedBlocks, type PackedSlot, packedDeclarations, readPacked } from "./packed";
import { DRAW_OF, KEYS, roundedAtRandom, wordsOfPlace } from "./rounding";
import { inQuads, quadRuleShader } from "./rule-in-quads";
import { dispatchPart, findTensor, LIST_PARAMS, overBlock, partsOf } from "./tensor-list";

/** Elements of a workgroup, on GPUs. */
const BLOCK = 1024;

/** Elements of 16 bits share their words with others, which other invocations write: they are set by atomic operations on their own bits. */
export function ruleShader(
  name: string,
  traced: Program,
  stored?: StoredFormats,
  onDevice: readonly boolean[] = [],
  block: number = BLOCK,
): Shader {
  const program = renamed(withMirror(traced, stored));
  const formatOf = (slot: number) => stored?.[slot] ?? "f32";
  const isWritten = (slot: number) => program.outputs.some((output) => output.slot === slot);
  const atomic = program.outputs.some(({ slot }) => isNarrow(formatOf(slot)));
  const packed = program.buffers.flatMap((_, slot): PackedSlot[] => {
    const format = formatOf(slot);
    return isPacked(format) ? [{ slot, format, isWritten: isWritten(slot) }] : [];
  });
  const packedAt = (slot: number) => packed.find((each) => each.slot === slot)!;
  const load = (slot: number, buffer: string) => {
    const format = formatOf(slot);
    if (isPacked(format)) return readPacked(packedAt(slot));
    return readStored(buffer, `at${slot} + i`, isRandom(format) ? withoutDraws(format) : format, atomic);
  };
  const store = (slot: number, buffer: string, value: string) => {
    const format = formatOf(slot);
    if (isPacked(format)) return keepPacked(packedAt(slot), value);
    const word = `${buffer}[at${slot} + i]`;
    if (format === "f32")
      return atomic ? `atomicStore(&${word}, bitcast<u32>(${value}));` : `${word} = bitcast<u32>(${value});`;
    const half = `${buffer}[(at${slot} + i) >> 1u]`;
    const shift = `(((at${slot} + i) & 1u) * 16u)`;
    const bits = isRandom(format)
      ? roundedAtRandom(format, value, program.buffers.length)
      : `${format === "bf16" ? "to_bfloat" : "to_half"}(${value})`;
    return `atomicAnd(&${half}, ~(0xffffu << ${shift}));\natomicOr(&${half}, ${bits} << ${shift});`;
  };
  const write = (buffers: Readonly<Record<string, string>>) =>
    writeProgram(program, {
      load: (slot, buffer) => load(slot, buffers[buffer]!),
      store: (slot, buffer, value) => store(slot, buffers[buffer]!, value),
      scalar: (slot, scalar) => (onDevice[slot] ? `${scalar}(0u)` : `params.${scalar}`),
    });
  const isDrawn = isRandom(stored?.[0]);
  const given = [...program.scalars.filter((_, slot) => !onDevice[slot]), ...(isDrawn ? KEYS : [])];
  const read = program.scalars.filter((_, slot) => onDevice[slot]);
  const { element, declarations } = write({});
  const views = program.buffers.map((buffer, slot) => [buffer, isNarrow(formatOf(slot)) ? "halves" : "words"] as const);
  return {
    name: `rule ${name}`,
    slices: {
      ...Object.fromEntries(views),
      table: "u32",
      ...Object.fromEntries(read.map((scalar) => [scalar, "f32"])),
    },
    params: { ...LIST_PARAMS, ...Object.fromEntries(given.map((scalar) => [scalar, "f32"])) },
    atomic,
    declarations: [
      declarations,
      ...conversionsOf(element.join("\n")),
      ...(isDrawn ? [DRAW_OF] : []),
      ...(packed.length > 0 ? packedDeclarations(packed) : []),
    ].join("\n"),
    body(buffers) {
      const { uniform, element } = write(buffers);
      const bySlot = Object.fromEntries(program.buffers.map((buffer, slot) => [slot, buffers[buffer]!]));
      const loop = packed.length > 0 ? overPackedBlocks(block, packed, bySlot, atomic, element) : overBlock(element);
      const further = isDrawn ? [`let extra = table(entry + 2u) * ${block}u;`] : [];
      const slots = program.buffers.length + (isDrawn ? 2 : 0);
      return [findTensor(slots, block), ...further, ...uniform, loop].join("\n");
    },
  };
}

interface PreparedRule {
  /** By the width of its loads, and by which scalars the device has. */
  readonly shaders: Map<string, Shader>;
  readonly scalars: readonly string[];
  readonly block: number;
}

export const rule: KernelSource<"rule", PreparedRule> = {
  prepare: ({ rule: { program } }: Spec<"rule">, { grain }: Target) => ({
    shaders: new Map(),
    scalars: renamed(program).scalars,
    block: BLOCK * grain,
  }),

  launch({ kernel, tensors, scalars }: Launch<"rule">, prepared: PreparedRule, execution: Execution) {
    const { rule, stored } = kernel.spec;
    const { block } = prepared;
    const onDevice = scalars.map((scalar) => typeof scalar !== "number");
    const params: Record<string, number> = {};
    const rest: Slice[] = [];
    const names = [...prepared.scalars, ...KEYS];
    scalars.forEach((scalar, s) => {
      if (typeof scalar === "number") params[names[s]!] = scalar;
      else rest.push(scalar);
    });
    const units = (tensors[0] ?? []).map((_, slot) => bytesOf(stored?.[slot]));
    const isDrawn = isRandom(stored?.[0]);
    const listed = tensors.map((slices) => ({ slices, extra: 0, further: isDrawn ? wordsOfPlace(slices[0]!) : [] }));
    for (const isWide of [true, false]) {
      const alike = listed.filter(({ slices }) => inQuads(slices, stored) === isWide);
      for (const { tensors, oversized } of partsOf(alike, block, execution.largestBinding, units)) {
        const key = `${isWide} ${onDevice.join()}`;
        const { name, program } = rule;
        const shader =
          prepared.shaders.get(key) ??
          (isWide
            ? quadRuleShader(name, program, stored, onDevice, block)
            : ruleShader(name, program, stored, onDevice, block));
        prepared.shaders.set(key, shader);
        const seen = tensors.map((each) => ({
          ...each,
          slices: each.slices.map((slice, slot) => {
            const format = stored?.[slot];
            return isPacked(format) ? wordsOf(slice, format) : slice;
          }),
        }));
        dispatchPart(execution, prepared, shader, { tensors: seen, oversized }, block, params, rest);
      }
    }
  },
};

type Format = StoredFormats[number];

const isNarrow = (format: Format) => format === "bf16" || format === "f16" || isRandom(format);

/** Of an element: of packed ones a part of their block's. */
function bytesOf(format: Format = "f32"): number {
  return isPacked(format) ? blockBytes(format) / PACKED_BLOCK : isNarrow(format) ? 2 : 4;
}

/** Packed elements as the words that they take. */
function wordsOf({ memory, byteOffset, length }: Slice, format: PackedDType): Slice {
  return { memory, byteOffset, length: packedBytes(length, format) / 4 };
}

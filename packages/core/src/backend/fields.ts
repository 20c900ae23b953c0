/**
 * The fields of launches, stated once for each kind: sizes, and slices with how many elements a kernel touches.
 * Devices of native code write their structs from them, and pack launches in the same order.
 */
import type { RowInput, RowOutput } from "../rule/rows/row-program";
import type { NumberDType } from "../values/dtype";
import type { Slice } from "./memory";
import type { ChannelSizes, Launch, LaunchArguments, SequenceSizes, Window2d } from "./spec";

/** How a size travels. Integers are exact below 2^53. */
export type SizeType = "integer" | "number" | "flag";
/** What a kernel does with a slice: of the launch's dtype, of indices (i32), or of bytes, whose dtype the spec decides. */
export type SliceType = "reads" | "writes" | "readsIndices" | "writesIndices" | "bytes";

/** Packs the fields of a launch as a device's kernels read them. */
export interface FieldWriter {
  integer(value: number): unknown;
  number(value: number): unknown;
  flag(value: boolean): unknown;
  /** The address of a slice, of which the kernel touches the first `needed` elements. */
  slice(slice: Slice, dtype: NumberDType, needed: number): unknown;
}

/** A struct of native code: its name, its fields in order, and how a launch fills them. `isTyped`: a template over the launch's dtype. */
export interface FieldStruct<Source> {
  readonly struct: string;
  readonly isTyped: boolean;
  readonly fields: readonly { readonly name: string; readonly type: SizeType | SliceType | FieldStruct<never> }[];
  write(to: FieldWriter, source: Source): void;
}

/** Sizes by name: how they travel, or the integer that a launch has elsewhere. */
type Sizes<Source> = {
  readonly [name: string]: SizeType | ((source: Source) => number);
};

/** Sizes that several kinds have, as a struct of their own. */
interface Group<Source> {
  readonly name: string;
  readonly struct: string;
  readonly sizes: Sizes<Source>;
  part(launch: never): unknown;
}

type SliceNames<K extends FieldKind> = {
  [Name in keyof LaunchArguments[K]]: LaunchArguments[K][Name] extends Slice ? Name : never;
}[keyof LaunchArguments[K]];

type SliceField<K extends FieldKind> = readonly [
  type: SliceType,
  elements: (launch: LaunchArguments[K]) => number,
  dtype?: (launch: Launch<K>) => NumberDType,
];

interface LaunchFields<K extends FieldKind> {
  readonly group?: Group<never>;
  readonly sizes?: Sizes<Launch<K>>;
  readonly slices: { readonly [Name in SliceNames<K>]: SliceField<K> };
}

/** The kinds whose fields are the same in every launch. Lists, and walks of any rank, are packed by each device in its way. */
export type FieldKind =
  | "reduce"
  | "matmul"
  | "gather"
  | "scatterAdd"
  | "unfold"
  | "fold"
  | "maxPool2d"
  | "maxPool2dGrad"
  | "batchNorm"
  | "batchNormGrad"
  | "groupNorm"
  | "groupNormGrad"
  | "lstm"
  | "lstmGrad";

/** Elements of all planes of images, of all planes of windows, and of all columns. */
export function windowElements({ batch, channels, height, width, outHeight, outWidth, kernel }: Window2d) {
  const planes = batch * channels;
  const pooled = planes * outHeight * outWidth;
  return { image: planes * height * width, pooled, columns: pooled * kernel[0] * kernel[1] };
}

/** Elements of the slices of a row program's launch, by their kind. */
export function rowElements({
  rows,
  length,
}: Pick<LaunchArguments["rows"], "rows" | "length">): Readonly<Record<RowInput | RowOutput, number>> {
  return { matrix: rows * length, vector: length, columns: length, number: rows };
}

const WINDOW: Group<Window2d> = {
  name: "window",
  struct: "Window",
  sizes: {
    batch: "integer",
    channels: "integer",
    height: "integer",
    width: "integer",
    outHeight: "integer",
    outWidth: "integer",
    kernelY: ({ kernel }) => kernel[0],
    kernelX: ({ kernel }) => kernel[1],
    strideY: ({ stride }) => stride[0],
    strideX: ({ stride }) => stride[1],
    paddingY: ({ padding }) => padding[0],
    paddingX: ({ padding }) => padding[1],
    dilationY: ({ dilation }) => dilation[0],
    dilationX: ({ dilation }) => dilation[1],
  },
  part: ({ window }: { window: Window2d }) => window,
};
const ofImages = ({ window }: { window: Window2d }) => windowElements(window).image;
const ofPooled = ({ window }: { window: Window2d }) => windowElements(window).pooled;
const ofWindows = ({ window }: { window: Window2d }) => windowElements(window).columns;

const CHANNELS: Group<ChannelSizes> = {
  name: "sizes",
  struct: "ChannelSizes",
  sizes: { outer: "integer", channels: "integer", inner: "integer", eps: "number" },
  part: (launch: ChannelSizes) => launch,
};
const ofAll = ({ outer, channels, inner }: ChannelSizes) => outer * channels * inner;
const ofChannels = ({ channels }: ChannelSizes) => channels;
const ofGroups = ({ outer, groups }: ChannelSizes & { readonly groups: number }) => outer * groups;
const ofEachChannel = ({ outer, channels }: ChannelSizes) => outer * channels;

const SEQUENCE: Group<SequenceSizes> = {
  name: "sizes",
  struct: "SequenceSizes",
  sizes: { length: "integer", batch: "integer", width: "integer", reverse: "flag" },
  part: (launch: SequenceSizes) => launch,
};
const ofWeight = ({ width }: SequenceSizes) => 4 * width * width;
const ofState = ({ batch, width }: SequenceSizes) => batch * width;
const ofStates = ({ length, batch, width }: SequenceSizes) => length * batch * width;
const ofGates = (sizes: SequenceSizes) => 4 * ofStates(sizes);

// Plain data: a page whose device has no structs drops all of it.
const FIELDS: { readonly [K in FieldKind]: LaunchFields<K> } = {
  reduce: {
    sizes: { outer: "integer", length: "integer", inner: "integer" },
    slices: {
      input: ["reads", ({ outer, length, inner }) => outer * length * inner],
      output: [
        "bytes",
        ({ outer, inner }) => outer * inner,
        ({ kernel: { spec } }) => (spec.op === "argmax" ? "i32" : spec.dtype),
      ],
    },
  },
  matmul: {
    sizes: { batch: "integer", m: "integer", n: "integer", k: "integer", strideA: "integer", strideB: "integer" },
    slices: {
      a: ["reads", ({ batch, m, k, strideA }) => (batch === 0 ? 0 : (batch - 1) * strideA + m * k)],
      b: [
        "reads",
        ({ batch, n, k, strideB, window }) =>
          batch === 0 ? 0 : window ? windowElements(window).image : (batch - 1) * strideB + k * n,
      ],
      output: ["writes", ({ batch, m, n }) => batch * m * n],
    },
  },
  gather: {
    sizes: { rows: "integer", width: "integer", count: "integer" },
    slices: {
      table: ["reads", ({ rows, width }) => rows * width],
      indices: ["readsIndices", ({ count }) => count],
      output: ["writes", ({ count, width }) => count * width],
    },
  },
  scatterAdd: {
    sizes: { rows: "integer", width: "integer", count: "integer" },
    slices: {
      source: ["reads", ({ count, width }) => count * width],
      indices: ["readsIndices", ({ count }) => count],
      output: ["writes", ({ rows, width }) => rows * width],
    },
  },
  unfold: { group: WINDOW, slices: { input: ["reads", ofImages], output: ["writes", ofWindows] } },
  fold: { group: WINDOW, slices: { input: ["reads", ofWindows], output: ["writes", ofImages] } },
  maxPool2d: {
    group: WINDOW,
    slices: { input: ["reads", ofImages], output: ["writes", ofPooled], indices: ["writesIndices", ofPooled] },
  },
  maxPool2dGrad: {
    group: WINDOW,
    slices: { gradient: ["reads", ofPooled], indices: ["readsIndices", ofPooled], output: ["writes", ofImages] },
  },
  batchNorm: {
    group: CHANNELS,
    slices: {
      input: ["reads", ofAll],
      weight: ["reads", ofChannels],
      bias: ["reads", ofChannels],
      output: ["writes", ofAll],
      mean: ["writes", ofChannels],
      variance: ["writes", ofChannels],
    },
  },
  batchNormGrad: {
    group: CHANNELS,
    slices: {
      input: ["reads", ofAll],
      gradient: ["reads", ofAll],
      weight: ["reads", ofChannels],
      mean: ["reads", ofChannels],
      variance: ["reads", ofChannels],
      inputGradient: ["writes", ofAll],
      weightGradient: ["writes", ofChannels],
      biasGradient: ["writes", ofChannels],
    },
  },
  groupNorm: {
    group: CHANNELS,
    sizes: { groups: "integer" },
    slices: {
      input: ["reads", ofAll],
      weight: ["reads", ofChannels],
      bias: ["reads", ofChannels],
      output: ["writes", ofAll],
      mean: ["writes", ofGroups],
      variance: ["writes", ofGroups],
    },
  },
  groupNormGrad: {
    group: CHANNELS,
    sizes: { groups: "integer" },
    slices: {
      input: ["reads", ofAll],
      gradient: ["reads", ofAll],
      weight: ["reads", ofChannels],
      mean: ["reads", ofGroups],
      variance: ["reads", ofGroups],
      inputGradient: ["writes", ofAll],
      weightGradient: ["writes", ofEachChannel],
      biasGradient: ["writes", ofEachChannel],
    },
  },
  lstm: {
    group: SEQUENCE,
    slices: {
      inputs: ["reads", ofGates],
      weight: ["reads", ofWeight],
      bias: ["reads", ({ width }) => 4 * width],
      hidden: ["reads", ofState],
      cell: ["reads", ofState],
      results: ["writes", ofStates],
      cells: ["writes", ofStates],
      gates: ["writes", ofGates],
    },
  },
  lstmGrad: {
    group: SEQUENCE,
    slices: {
      weight: ["reads", ofWeight],
      cell: ["reads", ofState],
      cellGradient: ["reads", ofState],
      cells: ["reads", ofStates],
      gradient: ["reads", ofStates],
      gates: ["reads", ofGates],
      inputsGradient: ["writes", ofGates],
      firstHiddenGradient: ["writes", ofState],
      firstCellGradient: ["writes", ofState],
    },
  },
};

/** The struct of the window of launches that have one. */
export const windowFields = (): FieldStruct<Window2d> => structOf(WINDOW.struct, WINDOW.sizes);

/** The struct of a kind's launches. */
export function fieldsOf<K extends FieldKind>(kind: K): FieldStruct<Launch<K>> {
  const { group, sizes = {}, slices } = FIELDS[kind] as unknown as LaunchFields<"gather">;
  const own = structOf(kind[0]!.toUpperCase() + kind.slice(1), sizes);
  const shared = group && structOf(group.struct, group.sizes);
  const fields = Object.entries<SliceField<"gather">>(slices).map(([name, [type, elements, dtypeOf]]) => {
    const isIndices = type === "readsIndices" || type === "writesIndices";
    return { name: name as "table", type, elements, dtypeOf: isIndices ? () => "i32" as const : dtypeOf };
  });
  return {
    struct: own.struct,
    isTyped: true,
    fields: [
      ...(shared ? [{ name: group.name, type: shared }] : []),
      ...own.fields,
      ...fields.map(({ name, type }) => ({ name, type })),
    ],
    // Eager launches wait for it.
    write(to, launch) {
      const source = launch as unknown as Launch<"gather">;
      if (shared) shared.write(to, group.part(source as never) as never);
      own.write(to, source);
      const { dtype } = source.kernel.spec;
      for (let i = 0; i < fields.length; i++) {
        const { name, elements, dtypeOf } = fields[i]!;
        to.slice(source[name], dtypeOf === undefined ? dtype : dtypeOf(source), elements(source));
      }
    },
  };
}

function structOf<Source>(struct: string, sizes: Sizes<Source>): FieldStruct<Source> {
  const fields = Object.entries(sizes).map(([name, size]) => {
    const type: SizeType = typeof size === "function" ? "integer" : size;
    return { name, type, of: typeof size === "function" ? size : undefined };
  });
  return {
    struct,
    isTyped: false,
    fields: fields.map(({ name, type }) => ({ name, type })),
    write(to, source) {
      for (let i = 0; i < fields.length; i++) {
        const { name, type, of } = fields[i]!;
        const value = of === undefined ? source[name as keyof Source] : of(source);
        if (type === "integer") to.integer(value as number);
        else if (type === "number") to.number(value as number);
        else to.flag(value as boolean);
      }
    },
  };
}

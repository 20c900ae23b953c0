/** What convolutions of one, two and three axes share, and their adjoints. */
import { check, checkOptions, type PadMode, pad, show, type Tensor, tidy } from "@opt/core";
import { uniform } from "../../initializers/initializers";
import { holdParameters } from "../../module/held";
import { Module } from "../../module/module";
import { batched } from "../batched";
import { checkExtents } from "../extent";
import { drawnBy, LAYER_OPTIONS, type LayerOptions, weightOf } from "../layer-options";
import { checkMode, type PaddingMode, type Sides, sidesOf } from "./border";
import { checkGroups } from "./groups";

/** One number for all axes, or one for each. */
export type Extents = number | readonly number[];

interface SharedOptions<E extends Extents> extends LayerOptions {
  readonly bias?: boolean;
  /** Steps between windows. Default 1. */
  readonly stride?: E;
  /** Steps between the elements of a window. Default 1. */
  readonly dilation?: E;
  /** Channels are cut into so many groups, each of which sees its own alone. Default 1. */
  readonly groups?: number;
}

export interface ConvolutionLayerOptions<E extends Extents> extends SharedOptions<E> {
  /** The border on both sides; "same" keeps the extents, with a stride of 1, and "valid" has none. Default 0. */
  readonly padding?: E | "same" | "valid";
  /** What the border is made of. Default "zeros". */
  readonly paddingMode?: PaddingMode;
}

export interface TransposedLayerOptions<E extends Extents> extends SharedOptions<E> {
  /** How much of the result is cut off on both sides. Default 0. */
  readonly padding?: E;
  /** More elements at the end, which no input reaches by itself. Default 0. */
  readonly outputPadding?: E;
}

/** How windows slide, one number for each axis. */
export interface SlidingOptions {
  readonly stride: readonly number[];
  readonly padding: readonly number[];
  readonly dilation: readonly number[];
  readonly outputPadding: readonly number[];
  readonly groups: number;
}

type AnyOptions = ConvolutionLayerOptions<Extents> & TransposedLayerOptions<Extents>;

const EXTENTS = ["number", "array"] as const;
const SHARED = { bias: "boolean", stride: EXTENTS, dilation: EXTENTS, groups: "number", ...LAYER_OPTIONS } as const;
const PLAIN = { ...SHARED, padding: ["number", "array", "string"], paddingMode: "string" } as const;
const TRANSPOSED = { ...SHARED, padding: EXTENTS, outputPadding: EXTENTS } as const;

export abstract class Convolution extends Module {
  weight: Tensor;
  bias: Tensor | null;
  readonly axes: 1 | 2 | 3;
  readonly sliding: SlidingOptions;
  /** What is added around the input first; null where the op's own zeros suffice. */
  readonly border: { readonly sides: readonly number[]; readonly mode: PadMode } | null;
  readonly #described: string;

  constructor(
    axes: 1 | 2 | 3,
    isTransposed: boolean,
    inChannels: number,
    outChannels: number,
    kernelSize: Extents,
    options: ConvolutionLayerOptions<Extents> | TransposedLayerOptions<Extents>,
  ) {
    super();
    const name = new.target.name;
    checkOptions(name, options, isTransposed ? TRANSPOSED : PLAIN);
    const given: AnyOptions = options as AnyOptions;
    const { bias = true, stride = 1, padding = 0, dilation = 1, outputPadding = 0, groups = 1, ...rest } = given;
    const { paddingMode = "zeros", ...layer } = rest;
    checkExtents(name, { inChannels, outChannels });
    checkGroups(name, groups, { inChannels, outChannels });
    checkMode(name, paddingMode);
    const each = (what: string, value: Extents, least: number) => listed(name, what, value, axes, least);
    const kernel = each("kernelSize", kernelSize, 1);
    const [steps, spread] = [each("stride", stride, 1), each("dilation", dilation, 1)];
    const isNamed = padding === "same" || padding === "valid";
    const sides = sidesOf(isNamed ? padding : each("padding", padding as Extents, 0), kernel, spread);
    const keeps = padding !== "same" || steps.every((step) => step === 1);
    check(
      keeps,
      "BAD_ARGUMENT",
      name,
      () => `padding "same" needs a stride of 1, got ${show(stride)}.`,
      "Use a number.",
    );
    const isOwn = paddingMode === "zeros" && sides.every(([before, after]) => before === after);
    const none = sides.every(([before, after]) => before + after === 0);
    this.axes = axes;
    this.border = isOwn || none ? null : { sides: flat(sides), mode: modeOf(paddingMode) };
    this.sliding = {
      stride: steps,
      padding: isOwn ? sides.map(([before]) => before) : kernel.map(() => 0),
      dilation: spread,
      outputPadding: each("outputPadding", outputPadding, 0),
      groups,
    };
    const shape = isTransposed ? [inChannels, outChannels / groups] : [outChannels, inChannels / groups];
    const bound = 1 / Math.sqrt(kernel.reduce((a, b) => a * b, shape[1]!));
    this.weight = uniform(weightOf([...shape, ...kernel], layer), -bound, bound, drawnBy(layer));
    this.bias = bias ? uniform(weightOf([outChannels], layer), -bound, bound, drawnBy(layer)) : null;
    holdParameters(this, ["weight"]);
    const settings = { stride, padding, dilation, outputPadding, groups, paddingMode };
    this.#described = `${inChannels}, ${outChannels}, kernelSize=${kernel.join("x")}${differing(settings)}`;
  }

  /** The convolution of [batch, channels, ...extents], whose border is there already. */
  protected abstract slide(x: Tensor): Tensor;

  forward(x: Tensor): Tensor {
    return batched(this.constructor.name, x, this.axes, (batch) => {
      const { border } = this;
      return border === null
        ? this.slide(batch)
        : tidy(() => this.slide(pad(batch, border.sides, { mode: border.mode })));
    });
  }

  override describe(): string {
    return `${this.#described}, bias=${this.bias !== null}`;
  }
}

/** One number for each axis. @throws OptError BAD_ARGUMENT */
function listed(where: string, name: string, value: Extents, axes: number, least: number): readonly number[] {
  const list = Array.isArray(value) ? [...(value as readonly number[])] : Array<number>(axes).fill(value as number);
  check(
    list.length === axes && list.every((n) => Number.isInteger(n) && n >= least),
    "BAD_ARGUMENT",
    where,
    () => `${name} must be an integer >= ${least}${axes > 1 ? `, or ${axes} of them` : ""}, got ${show(value)}.`,
    "For example 2.",
  );
  return list;
}

/** As `pad` takes them: the last axis first. */
function flat(sides: readonly Sides[]): readonly number[] {
  return sides.toReversed().flat();
}

function modeOf(mode: PaddingMode): PadMode {
  return mode === "zeros" ? "constant" : mode;
}

const DEFAULTS: Readonly<Record<string, unknown>> = {
  stride: 1,
  padding: 0,
  dilation: 1,
  outputPadding: 0,
  groups: 1,
  paddingMode: "zeros",
};

/** What is not the default: ", stride=2x1, padding=1". */
function differing(settings: Readonly<Record<string, unknown>>): string {
  return Object.entries(settings)
    .filter(([name, value]) => value !== DEFAULTS[name])
    .map(([name, value]) => `, ${name}=${[value].flat().join("x")}`)
    .join("");
}
